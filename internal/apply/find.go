package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apierror"
)

// Get reads an object of an inventory; nil means that it does not exist, or that it went with its kind.
func (a *Applier) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if _, found, err := a.find(ctx, ref, u); err != nil || !found {
		return nil, err
	}
	return u, nil
}

// find reads an object of an inventory where it is now: its kind may be gone since, or may have lost a version.
func (a *Applier) find(ctx context.Context, ref Ref, into client.Object) (at Ref, found bool, err error) {
	at, found, err = a.findOnce(ctx, ref, into)
	if isNotServed(err) { // by what the mapper remembers of the kind
		meta.MaybeResetRESTMapper(a.Client.RESTMapper())
		at, found, err = a.findOnce(ctx, ref, into)
	}
	if meta.IsNoMatchError(err) && !isNotServed(err) {
		return ref, false, a.checkNoDefinition(ctx, ref)
	}
	return at, found, err
}

func (a *Applier) findOnce(ctx context.Context, ref Ref, into client.Object) (at Ref, found bool, err error) {
	if at, err = a.resolveRef(ref); err != nil {
		return ref, false, err
	}
	found, err = a.readObject(ctx, at, into)
	return at, found, err
}

// resolveRef completes the Ref of an inventory with a version that is served and the right namespace: the kind
// may have lost the version, and whoever wrote the inventory may not have known the scope.
func (a *Applier) resolveRef(ref Ref) (Ref, error) {
	mapper, kind := a.Client.RESTMapper(), schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	m, err := mapper.RESTMapping(kind, ref.Version)
	if meta.IsNoMatchError(err) {
		m, err = mapper.RESTMapping(kind)
	}
	if err != nil {
		return Ref{}, err
	}
	ref.Version = m.GroupVersionKind.Version
	switch {
	case m.Scope.Name() != meta.RESTScopeNameNamespace:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = a.Namespace
	}
	return ref, nil
}

// maxDefinitions is how many definitions of a group are read: a cluster may claim to have any number.
const maxDefinitions = 200

// checkNoDefinition returns nil if no definition brings the kind of an object, so that the object is gone with
// its kind. An API server that has just started lists kinds before it has read all definitions; so the
// definitions themselves are read.
func (a *Applier) checkNoDefinition(ctx context.Context, ref Ref) error {
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := a.Client.List(ctx, l); err != nil {
		return fmt.Errorf("looking for the definition of %s: %w", ref, err)
	}
	l.Items = slices.DeleteFunc(l.Items,
		func(m metav1.PartialObjectMetadata) bool { return !strings.HasSuffix(m.Name, "."+ref.Group) })
	if n := len(l.Items); n > maxDefinitions {
		return &notServedError{
			ref, fmt.Errorf("group %s has %d definitions, and at most %d are looked at", ref.Group, n, maxDefinitions),
		}
	}
	for _, m := range l.Items {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(kind)
		err := a.Client.Get(ctx, client.ObjectKey{Name: m.Name}, crd)
		if apierror.IsObjectNotFound(err, "customresourcedefinitions", m.Name) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for the definition of %s: %w", ref, err)
		}
		if defined, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind"); defined == ref.Kind {
			return &notServedError{ref, fmt.Errorf("there is %s %s", kind.Kind, m.Name)}
		}
	}
	return nil
}
