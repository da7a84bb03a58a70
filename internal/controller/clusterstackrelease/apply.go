package clusterstackrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/stack/finding"
)

// applyClass applies the class and its templates in the plane as the release has them, and deletes objects that it does
// not have any more.
func (r *Reconciler) applyClass(ctx context.Context, s *scope) error {
	// After a restart only the inventory knows which kinds to watch.
	if err := r.watches.watchKinds(inventoryRefs(s.object.Status.Resources)); err != nil {
		return err
	}
	sameDigest := s.object.Status.Digest == s.tracked.Stored().Status.Digest
	if sameDigest && !r.applied.isDue(s.object, r.Clock.Now(), r.Interval) &&
		r.applied.isUnchanged(ctx, r.Client, s.object) {
		s.setApplied(len(s.object.Status.Resources))
		return nil
	}
	objects, err := r.Renderer.RenderClass(ctx, s.loaded, s.object.Namespace)
	if err != nil {
		return r.reportRenderError(s, err)
	}
	s.object.Status.Parameters = describeParameters(objects)
	a := r.newApplier(s.object)
	set, err := a.Prepare(ctx, rendering.ToUnstructured(objects))
	if err != nil {
		return r.reportPrepareError(s, err)
	}
	intent, stale := apply.PlanInventory(s.object.Status.Resources, set)
	if n := len(intent); n > csv1.MaxReleaseResources {
		return r.reportPrepareError(s,
			apply.Refusef("the class has %d objects, and a release can list %d; put fewer into it", n, csv1.MaxReleaseResources))
	}
	s.object.Status.Resources = intent
	// The inventory must list objects before they are applied (ADR 9).
	if err := r.write(ctx, s); err != nil {
		return err
	}
	// Before they are applied, so that no change after that is missed.
	if err := r.watches.watchKinds(set.Refs()); err != nil {
		return err
	}
	results := a.Apply(ctx, set, apply.TrustSynced(intent))
	var pruned []apply.Result
	if apply.JoinErrors(results) == nil { // otherwise what replaces them is not there yet
		pruned = a.Prune(ctx, stale)
	}
	s.object.Status.Resources = apply.RecordResults(s.object.Status.Resources, results, pruned)
	recordGenerations(s.object.Status.Resources, results)
	if err := apply.JoinErrors(append(slices.Clone(results), pruned...)); err != nil {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
		if apply.IsPending(results) && apply.IsPending(pruned) {
			return reconcile.Wait(pendingRetry, "%v", err)
		}
		return err
	}
	s.setApplied(len(results))
	r.applied.remember(s.object, set, r.Clock.Now(), r.Interval)
	return nil
}

// inventoryRefs returns the objects of an inventory.
func inventoryRefs(resources []csv1.Resource) []apply.Ref {
	out := make([]apply.Ref, len(resources))
	for i, r := range resources {
		out[i] = apply.InventoryRef(r)
	}
	return out
}

// setApplied makes Applied true, for n objects.
func (s *scope) setApplied(n int) {
	s.conditions.SetTrue(csv1.ConditionApplied, fmt.Sprintf("%d objects are as the release has them", n))
}

// reportRenderError says in the status why rendering failed. An invalid release stays so: rendering it again and again
// would only take time from others.
func (r *Reconciler) reportRenderError(s *scope, err error) error {
	var found finding.List
	if !errors.As(err, &found) {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
		return err
	}
	s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonInvalid, err.Error())
	return reconcile.Wait(r.Interval, "%v", err)
}

// reportPrepareError says in the status why objects cannot be applied. Objects that are refused are not tried again
// until the release changes.
func (r *Reconciler) reportPrepareError(s *scope, err error) error {
	if errors.Is(err, apply.ErrRefused) {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonRefused, err.Error())
		return reconcile.Terminal(err)
	}
	s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
	return err
}

// newApplier returns an applier for the namespace of a release only, and only for the kinds that releases may bring.
func (r *Reconciler) newApplier(o *csv1.ClusterStackRelease) *apply.Applier {
	return &apply.Applier{
		Client:    r.Live,
		Owner:     fieldOwner,
		Namespace: o.Namespace,
		Labels:    map[string]string{csv1.OwnedLabel: csv1.OwnedValue},
		OwnerRefs: []metav1.OwnerReference{{
			APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStackRelease", Name: o.Name, UID: o.UID,
			Controller: ptr.To(true),
		}},
		Rules: []apply.Rule{apply.OnlyKinds(r.Kinds), apply.OnlyNamespace(o.Namespace), apply.NoOwnerReferences()},
	}
}
