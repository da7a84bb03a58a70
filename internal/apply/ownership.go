package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

// readMetadata reads the metadata of an object; nil means that the API server says that it does not exist. If the
// answer says nothing about the object, the error is a notServedError.
func (a *Applier) readMetadata(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	if found, err := a.readObject(ctx, ref, m); err != nil || !found {
		return nil, err
	}
	return m, nil
}

func (a *Applier) readObject(ctx context.Context, ref Ref, into client.Object) (found bool, err error) {
	into.GetObjectKind().SetGroupVersionKind(ref.GroupVersionKind())
	err = a.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, into)
	if a.isAbsent(ref, err) {
		return false, nil
	}
	return err == nil, asNotServed(ref, err)
}

// isAbsent says whether an error means that the API server knows that the object does not exist.
func (a *Applier) isAbsent(ref Ref, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	m, unknown := a.Client.RESTMapper().RESTMapping(ref.GroupVersionKind().GroupKind(), ref.Version)
	return unknown == nil && apierror.IsObjectNotFound(err, m.Resource.Resource, ref.Name)
}

// readOwnedMetadata reads the metadata of an object that is to be applied. The object must not exist, or must be
// ours and not being deleted.
func (a *Applier) readOwnedMetadata(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	live, err := a.readMetadata(ctx, ref)
	switch {
	case err != nil || live == nil:
		return nil, err
	case live.Labels[csv1.OwnedLabel] != csv1.OwnedValue:
		return nil, notOwnedError(ref, live)
	case a.otherOwnerName(live) != "":
		return nil, refusal(fmt.Sprintf("%s belongs to %s; give it another name in the chart", ref, a.otherOwnerName(live)))
	case live.DeletionTimestamp != nil:
		return nil, deletingError(ref)
	}
	return live, nil
}

// isOwned says whether an object is ours, so that we may delete it.
func (a *Applier) isOwned(live *metav1.PartialObjectMetadata) bool {
	return live.Labels[csv1.OwnedLabel] == csv1.OwnedValue && a.otherOwnerName(live) == ""
}

// otherOwnerName names an owner of the object that is of our kind, but not us. An owner of our name is us, also
// if it has been created anew since.
func (a *Applier) otherOwnerName(live *metav1.PartialObjectMetadata) string {
	other := ""
	for _, o := range live.OwnerReferences {
		for _, us := range a.OwnerRefs {
			if groupKind(o) != groupKind(us) {
				continue
			}
			if o.Name == us.Name {
				return ""
			}
			other = o.Kind + " " + o.Name
		}
	}
	return other
}

func groupKind(o metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
}

func notOwnedError(ref Ref, live *metav1.PartialObjectMetadata) error {
	var managers []string
	for _, f := range live.ManagedFields {
		managers = append(managers, f.Manager)
	}
	slices.Sort(managers)
	by := ""
	if managers = slices.Compact(managers); len(managers) > 0 {
		by = " (field managers " + strings.Join(managers, ", ") + ")"
	}
	return refusal(fmt.Sprintf("%s belongs to somebody else%s; rename it in the chart, or hand it over with %s %s=%s",
		ref, by, ref.kubectlCommand("label"), csv1.OwnedLabel, csv1.OwnedValue))
}
