package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"time"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
)

// runStages runs the stages that are not done, in their order, up to the first that has to wait.
func (r *Reconciler) runStages(ctx context.Context, s *scope) error {
	for i, def := range s.stages() {
		ss := &s.addon.Status.Stages[i]
		if ss.Phase == csv1.StageDone {
			continue
		}
		if err := r.runStage(ctx, s, i, def, ss); err != nil {
			return r.explainStageError(s, ss, err)
		}
	}
	return nil
}

// runStage takes one stage through its phases.
func (r *Reconciler) runStage(ctx context.Context, s *scope, i int, def stack.Stage, ss *csv1.StageStatus) error {
	if ss.Phase == csv1.StagePending || ss.Phase == "" {
		r.setStagePhase(ss, csv1.StageWaitPre)
	}
	if ss.Phase == csv1.StageWaitPre {
		if err := r.waitForCondition(ctx, s, def.WaitForPreCondition); err != nil {
			return err
		}
		if err := r.detectInstall(ctx, s, i, ss); err != nil {
			return err
		}
		r.setStagePhase(ss, csv1.StageApplying)
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonStagesRunning,
			fmt.Sprintf("stage %s of %s is being applied", ss.Name, s.release.Name))
	}
	if ss.Phase == csv1.StageApplying {
		if err := r.applyOrDeleteStage(ctx, s, i, def, ss); err != nil {
			return err
		}
		r.setStagePhase(ss, csv1.StageWaitPost)
		// The next runs need not apply it again while the stage waits.
		r.recordApply(s, lastApply{partial: true}, r.Interval/reappliesPerInterval)
	}
	if err := r.waitForCondition(ctx, s, def.WaitForPostCondition); err != nil {
		return err
	}
	r.setStagePhase(ss, csv1.StageDone)
	return r.deleteSucceededHelmHooks(ctx, s, i, ss)
}

// notReadyError says what a stage waits for. It is no failure, unless it takes too long.
type notReadyError struct{ message string }

func (n *notReadyError) Error() string { return n.message }

// explainStageError says in the status how far a stage is and why, and decides when to look again.
func (r *Reconciler) explainStageError(s *scope, ss *csv1.StageStatus, err error) error {
	var notReady *notReadyError
	var invalid *invalidConditionError
	switch {
	case errors.As(err, &invalid):
		ss.Message = reconcile.TruncateMessage(err.Error())
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonConditionInvalid,
			fmt.Sprintf("stage %s: %v; publish a corrected release and give the cluster its class", ss.Name, err))
		return reconcile.Wait(r.Interval, "%v", err)
	case errors.As(err, &notReady):
		ss.Message = reconcile.TruncateMessage(err.Error())
		return r.reportStageWaiting(s, ss)
	case reconcile.IsWait(err): // the condition was set where more is known of it
		return err
	default:
		ss.Message = reconcile.TruncateMessage(err.Error())
		s.conditions.SetFalse(csv1.ConditionApplied, failureReason(err), fmt.Sprintf("stage %s: %v", ss.Name, err))
		return err
	}
}

// failureReason returns the condition reason for an error of applying.
func failureReason(err error) string {
	if errors.Is(err, apply.ErrRefused) {
		return csv1.ReasonRefused
	}
	return csv1.ReasonApplyFailed
}

// fastPollPeriod is how long a stage that begins to wait polls more often.
const fastPollPeriod = 10 * time.Second

// reportStageWaiting says what a stage waits for, and polls less often once its time is up. A time-out changes nothing
// else.
func (r *Reconciler) reportStageWaiting(s *scope, ss *csv1.StageStatus) error {
	reason, text, poll := csv1.ReasonStageWaiting, "", r.Poll
	if ss.Since != nil {
		switch took := r.Clock.Since(ss.Since.Time); {
		case took < fastPollPeriod:
			poll = r.Poll / 4 // most conditions are met soon
		case took > r.Timeout:
			reason, text, poll = csv1.ReasonStageTimedOut, fmt.Sprintf(", for longer than %s", r.Timeout), 5*r.Poll
		}
	}
	s.conditions.SetFalse(csv1.ConditionApplied, reason,
		fmt.Sprintf("stage %s (%s) waits%s: %s", ss.Name, ss.Phase, text, ss.Message))
	return reconcile.Wait(poll, "stage %s", ss.Name)
}

// applyOrDeleteStage applies or deletes the objects of a stage, with its Helm hooks.
func (r *Reconciler) applyOrDeleteStage(ctx context.Context, s *scope, i int, def stack.Stage,
	ss *csv1.StageStatus) error {
	rendered, err := r.renderedStage(ctx, s, i)
	if err != nil {
		return err
	}
	if def.Action == stack.ActionDelete {
		return r.deleteStage(ctx, s, rendered)
	}
	if err := r.runHelmHooks(ctx, s, rendered, ss, beforeObjects); err != nil {
		return err
	}
	if err := r.applyStage(ctx, s, rendered); err != nil {
		return err
	}
	return r.runHelmHooks(ctx, s, rendered, ss, afterObjects)
}

// renderedStage returns what a stage renders to.
func (r *Reconciler) renderedStage(ctx context.Context, s *scope, i int) (stack.RenderedStage, error) {
	all, err := r.renderAddons(ctx, s)
	if err != nil {
		return stack.RenderedStage{}, err
	}
	of := stagesOfRuntimeHook(all, s.runtimeHook())
	if i >= len(of) {
		return stack.RenderedStage{}, fmt.Errorf("stage %d of %s has no chart", i, s.runtimeHook())
	}
	return of[i], nil
}

// stagesOfRuntimeHook returns the rendered stages of one runtime hook.
func stagesOfRuntimeHook(all []stack.RenderedStage, hook string) (out []stack.RenderedStage) {
	for _, st := range all {
		if st.RuntimeHook == hook {
			out = append(out, st)
		}
	}
	return out
}
