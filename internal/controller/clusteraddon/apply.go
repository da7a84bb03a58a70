package clusteraddon

import (
	"context"
	"slices"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/stack"
)

// newApplier returns an applier for the workload cluster. A release may bring anything there, except objects that
// belong to others or to kubeadm.
func (s *scope) newApplier() *apply.Applier {
	return &apply.Applier{
		Client:    s.workload.Client,
		Owner:     fieldOwner,
		Namespace: stack.AddonNamespace,
		Labels:    map[string]string{csv1.OwnedLabel: csv1.OwnedValue},
		Rules:     []apply.Rule{apply.NoKubeadmObjects()},
	}
}

// applyStage applies the objects of a stage. They are in the inventory before that.
func (r *Reconciler) applyStage(ctx context.Context, s *scope, st stack.RenderedStage) error {
	a := s.newApplier()
	set, err := a.Prepare(ctx, rendering.ToUnstructured(st.Objects))
	if err != nil {
		return err
	}
	if err := r.recordIntent(ctx, s, set); err != nil {
		return err
	}
	results := a.Apply(ctx, set, apply.TrustSynced(s.addon.Status.Resources))
	s.addon.Status.Resources = apply.RecordResults(s.addon.Status.Resources, results, nil)
	s.results = append(s.results, results...)
	if slices.ContainsFunc(results, mayAddKinds) {
		s.rendered = nil // charts of later stages ask which kinds there are
	}
	return apply.JoinErrors(results)
}

// recordIntent writes what is about to be applied into the inventory, so that nothing of ours is ever in a cluster
// unlisted (ADR 9).
func (r *Reconciler) recordIntent(ctx context.Context, s *scope, set *apply.Set) error {
	intent, _ := apply.PlanInventory(s.addon.Status.Resources, set)
	if n := len(intent); n > csv1.MaxAddonResources {
		return apply.Refusef(
			"the add-ons have %d objects with this stage, and a ClusterAddon can list %d; put fewer into the release", n,
			csv1.MaxAddonResources,
		)
	}
	s.addon.Status.Resources = intent
	return r.writeChanges(ctx, s)
}

// mayAddKinds reports whether a result may have added a kind to the cluster.
func mayAddKinds(r apply.Result) bool {
	return r.Err == nil && r.Ref.Kind == "CustomResourceDefinition" && r.Change != apply.Unchanged &&
		r.Change != apply.Unknown
}

// deleteStage deletes the objects of a stage, as far as they are ours, and waits until they are gone.
func (r *Reconciler) deleteStage(ctx context.Context, s *scope, st stack.RenderedStage) error {
	a := s.newApplier()
	refs, err := a.Refs(rendering.ToUnstructured(st.Objects))
	if err != nil {
		return err
	}
	return r.prune(ctx, s, refs)
}

// prune deletes objects and takes them out of the inventory. Namespaces and definitions of kinds are only taken out:
// with them, the customer's objects there or of these kinds would go.
func (r *Reconciler) prune(ctx context.Context, s *scope, refs []apply.Ref) error {
	results := s.newApplier().Prune(ctx, slices.DeleteFunc(slices.Clone(refs), mayHoldUserObjects))
	for _, ref := range refs {
		if mayHoldUserObjects(ref) {
			results = append(results, apply.Result{Ref: ref})
		}
	}
	s.addon.Status.Resources = apply.RecordResults(s.addon.Status.Resources, nil, results)
	err := apply.JoinErrors(results)
	// Objects with finalizers need time to go, which is no failure.
	if err != nil && apply.IsPending(results) {
		return &notReadyError{err.Error()}
	}
	return err
}

// mayHoldUserObjects reports whether the deletion of an object would delete objects of customers too.
func mayHoldUserObjects(r apply.Ref) bool {
	return r.Group == "apiextensions.k8s.io" && r.Kind == "CustomResourceDefinition" || r.Group == "" &&
		r.Kind == "Namespace"
}
