package workloadcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/provider"
)

// Backoff for a provider that failed or does not answer: short at first, then longer. One that refuses may accept after
// a while.
const (
	initialBackoff = time.Second
	maxBackoff     = 8 * time.Second
	providerRetry  = 30 * time.Second
)

// askProvider asks the provider whether it accepts the spec, and what to set in the class, unless it has answered the
// same before. A cluster that is held at its release keeps the answer for that release: the spec may fit the other one
// only.
func (r *Reconciler) askProvider(ctx context.Context, s *scope) error {
	var err error
	if s.contractRelease, err = topology.ReleaseForProvider(ctx, r.Client, s.target); err != nil {
		return s.reportMissingClass(err)
	}
	was := topology.ReadAnswer(s.cluster)
	if s.held {
		s.answer = was
		s.conditions.SetTrue(v1alpha1.ConditionAccepted,
			fmt.Sprintf("%s is asked once the cluster can have its release", s.description.Name))
		return nil
	}
	if s.answer, err = topology.DigestInput(s.object, s.target.Key().String(), s.description); err != nil {
		return err
	}
	if s.answer.InputDigest == was.InputDigest {
		// The whole input is the same. Digests of parts that an older Polder wrote may differ, and are replaced.
		s.answer.Topology = was.Topology
		s.conditions.SetTrue(v1alpha1.ConditionAccepted, fmt.Sprintf("%s takes what the spec says", s.description.Name))
		return nil
	}
	in := provider.Input{Cluster: s.object, Release: s.contractRelease}
	errs, err := r.Provider.Validate(ctx, in)
	if err != nil {
		return r.reportProviderFailure(s, err)
	}
	if i := slices.IndexFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeInternal }); i >= 0 {
		return r.reportProviderFailure(s, errs[i]) // it cannot tell at the moment
	}
	// Errors against machines that run and are unchanged are dropped: a withdrawn machine type must not stop a cluster.
	errs, unchangedParts := topology.SplitMachineErrors(s.object, errs, func(part string) bool {
		return was.HasPart(part) && was.PartDigests[part] == s.answer.PartDigests[part]
	})
	if len(errs) > 0 {
		return s.reportRefusal(errs)
	}
	if s.answer.Topology, err = r.Provider.Topology(ctx, topology.ClearMachineSelections(in, unchangedParts)); err != nil {
		return r.reportProviderFailure(s, err)
	}
	s.answer.KeepUnchangedParts(was)
	s.conditions.SetTrue(v1alpha1.ConditionAccepted, fmt.Sprintf("%s takes what the spec says", s.description.Name))
	return nil
}

// reportMissingClass says that the class of a release is not there, though the release is.
func (s *scope) reportMissingClass(err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	s.conditions.SetFalse(v1alpha1.ConditionAccepted, v1alpha1.ReasonReleaseNotReady,
		fmt.Sprintf("the class of release %s is not there", s.target.Key()))
	return reconcile.Wait(providerRetry, "%v", err)
}

// reportRefusal says why the provider refuses the spec.
func (s *scope) reportRefusal(errs field.ErrorList) error {
	text := errs.ToAggregate().Error()
	a := advice{
		fmt.Sprintf("provider %s does not take the spec: %s", s.description.Name, text), v1alpha1.Customer,
		"correct the spec",
	}
	if providerHasNoRoom(errs) {
		a = advice{
			fmt.Sprintf("provider %s has no room for the cluster: %s", s.description.Name, errs[0].Detail),
			v1alpha1.PlatformOperator, "make room; it is asked again by itself",
		}
	}
	s.stall(v1alpha1.ConditionAccepted, v1alpha1.ReasonProviderRefused, a)
	return reconcile.Wait(providerRetry, "%s", text) // what the provider offers may change
}

// providerHasNoRoom says that the provider refuses every cluster now, whatever its spec.
func providerHasNoRoom(errs field.ErrorList) bool {
	return len(errs) == 1 && errs[0].Type == field.ErrorTypeForbidden && errs[0].Field == "spec.provider"
}

// reportProviderFailure says how a call to the provider failed. What runs goes on.
func (r *Reconciler) reportProviderFailure(s *scope, err error) error {
	reason := v1alpha1.ReasonProviderFailed
	switch {
	case errors.Is(err, guard.ErrPanicked):
		reason = v1alpha1.ReasonProviderPanicked
	case errors.Is(err, guard.ErrTimedOut):
		reason = v1alpha1.ReasonProviderTimedOut
	}
	s.stall(v1alpha1.ConditionAccepted, reason, advice{
		fmt.Sprintf("provider %s could not say what it needs: %v", r.Provider.Name(), err), v1alpha1.PlatformOperator,
		fmt.Sprintf("see the log of provider %s; it is asked again by itself", r.Provider.Name()),
	})
	return reconcile.Wait(r.providerBackoff(s), "%v", err)
}

// providerBackoff returns when to ask again: after half the time for which it has failed, within limits, and with
// jitter, so that not all clusters ask at once.
func (r *Reconciler) providerBackoff(s *scope) time.Duration {
	c := meta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionAccepted)
	return wait.Jitter(min(max(initialBackoff, r.Clock.Now().Sub(c.LastTransitionTime.Time)/2), maxBackoff), 0.25)
}
