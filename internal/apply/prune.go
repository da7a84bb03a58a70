package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prune deletes objects in the opposite order of Apply and returns one result for each. Those without an error
// are gone, or are not ours any more and stay; those with an error still exist. Objects of a lower rank are not
// deleted before all of a higher rank are gone: templates stay as long as their class does, and a controller as
// long as its objects.
func (a *Applier) Prune(ctx context.Context, refs []Ref) []Result {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(x, y Ref) int {
		return cmp.Or(cmp.Compare(rankOf(y), rankOf(x)), compareKeys(x.Key(), y.Key()))
	})
	results := make([]Result, len(refs))
	for from := 0; from < len(refs); {
		to := from + 1
		for to < len(refs) && rankOf(refs[to]) == rankOf(refs[from]) {
			to++
		}
		first := firstFailed(results[:from])
		a.runParallel(to-from, func(i int) {
			ref := refs[from+i]
			results[from+i] = Result{Ref: ref, Err: a.pruneOne(ctx, ref, first)}
		})
		from = to
	}
	return results
}

// pruneOne deletes an object, unless another one has to go first.
func (a *Applier) pruneOne(ctx context.Context, ref Ref, first *Result) error {
	if first != nil {
		return pendingError(fmt.Sprintf("%s stays until %s is gone", ref, first.Ref))
	}
	if err := a.deleteIfOwned(ctx, ref); err != nil {
		return explainError("deleting", ref, err)
	}
	return nil
}

// deleteIfOwned deletes an object if it is ours. The error is pending as long as the object is being deleted.
func (a *Applier) deleteIfOwned(ctx context.Context, ref Ref) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if isSystemNamespace(ref) {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	at, found, err := a.find(ctx, ref, live)
	switch {
	case err != nil:
		return err
	case !found || !a.isOwned(live) || live.Annotations[keepAnnotation] == keepValue:
		return nil
	case live.DeletionTimestamp != nil:
		return deletionPendingError(at, live)
	}
	return a.deleteObject(ctx, at, live)
}

// deleteObject deletes the very object that was read.
func (a *Applier) deleteObject(ctx context.Context, ref Ref, live *metav1.PartialObjectMetadata) error {
	err := a.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case a.isAbsent(ref, err):
		return nil
	case apierrors.IsConflict(err):
		return pendingError(ref.String() + " was changed by somebody else at the same moment; it is looked at again")
	case err != nil:
		return asNotServed(ref, err)
	case len(live.Finalizers) > 0:
		return deletionPendingError(ref, live)
	}
	// The object may still exist: the API server deletes some gracefully, and a finalizer may be new.
	now, err := a.readMetadata(ctx, ref)
	if now != nil && now.UID == live.UID {
		return deletionPendingError(ref, now)
	}
	return err
}

func deletionPendingError(ref Ref, live *metav1.PartialObjectMetadata) error {
	if len(live.Finalizers) > 0 {
		return pendingError(fmt.Sprintf("%s is being deleted; it waits for those who put on its finalizers %s", ref,
			strings.Join(live.Finalizers, ", ")))
	}
	return pendingError(ref.String() + " is being deleted")
}

// Annotation of Helm for objects that outlive their release.
const (
	keepAnnotation = "helm.sh/resource-policy"
	keepValue      = "keep"
)

// isSystemNamespace says whether an object is a namespace that no cluster can be without.
func isSystemNamespace(r Ref) bool {
	return r.Group == "" && r.Kind == "Namespace" &&
		slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, r.Name)
}
