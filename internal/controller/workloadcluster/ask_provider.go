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
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/provider"
)

// Times: a provider that broke down, or does not answer, is asked again soon at first, then less often; one that refuses
// may have changed its mind after a while.
const (
	initialBackoff = time.Second
	maxBackoff     = 8 * time.Second
	providerRetry  = 30 * time.Second
)

// askProvider asks the provider whether it takes the spec, and what the class must be told, unless it has said so
// before. A cluster that is held at its release keeps what was said of that: what the spec says may fit the other
// one only.
func (r *Reconciler) askProvider(ctx context.Context, s *scope) error {
	var err error
	if s.contractRelease, err = lineage.ReleaseForProvider(ctx, r.Client, s.target); err != nil {
		return s.reportMissingClass(err)
	}
	was := topology.ReadAnswer(s.cluster)
	if s.held {
		s.answer = was
		s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s is asked once the cluster can have its release", s.description.Name))
		return nil
	}
	if s.answer, err = topology.DigestInput(s.object, s.target.Key().String(), s.description); err != nil {
		return err
	}
	if s.answer.InputDigest == was.InputDigest {
		s.answer.Topology = was.Topology // what it was asked about parts is the same, however an older Polder wrote that down
		s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s takes what the spec says", s.description.Name))
		return nil
	}
	in := provider.Input{Cluster: s.object, Release: s.contractRelease}
	errs, err := r.Provider.Validate(ctx, in)
	if err != nil {
		return r.reportProviderFailure(s, err)
	}
	if i := slices.IndexFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeInternal }); i >= 0 {
		return r.reportProviderFailure(s, errs[i]) // it does not know now
	}
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
	s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s takes what the spec says", s.description.Name))
	return nil
}

// reportMissingClass says that the class of a release is not there, though the release is.
func (s *scope) reportMissingClass(err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	s.set(v1alpha1.ConditionAccepted, v1alpha1.ReasonReleaseNotReady, fmt.Sprintf("the class of release %s is not there", s.target.Key()))
	return reconcile.Wait(providerRetry, "%v", err)
}

func (s *scope) reportRefusal(errs field.ErrorList) error {
	text := errs.ToAggregate().Error()
	s.stall(v1alpha1.ConditionAccepted, v1alpha1.ReasonProviderRefused, advice{
		fmt.Sprintf("provider %s does not take the spec: %s", s.description.Name, text), v1alpha1.Customer, "correct the spec",
	})
	return reconcile.Wait(providerRetry, "%s", text) // what the provider has may change
}

// reportProviderFailure says what became of a call to the provider. What runs goes on.
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

// providerBackoff is when to ask again: half as long as it has failed so far, within limits, and not all clusters at once.
func (r *Reconciler) providerBackoff(s *scope) time.Duration {
	c := meta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionAccepted)
	return wait.Jitter(min(max(initialBackoff, r.Now().Sub(c.LastTransitionTime.Time)/2), maxBackoff), 0.25)
}
