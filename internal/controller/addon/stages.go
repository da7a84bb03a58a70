package addon

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

// staged runs the stages that are not done, in their order, up to the first that has to wait.
func (r *Reconciler) staged(ctx context.Context, s *scope) error {
	for i, def := range s.stages() {
		ss := &s.addon.Status.Stages[i]
		if ss.Phase == csv1.StageDone {
			continue
		}
		if err := r.stage(ctx, s, i, def, ss); err != nil {
			return r.explain(s, ss, err)
		}
	}
	return nil
}

// stage takes one stage through its phases.
func (r *Reconciler) stage(ctx context.Context, s *scope, i int, def stack.Stage, ss *csv1.StageStatus) error {
	if ss.Phase == csv1.StagePending || ss.Phase == "" {
		turn(ss, csv1.StageWaitPre)
	}
	if ss.Phase == csv1.StageWaitPre {
		if err := r.await(ctx, s, def.WaitForPreCondition); err != nil {
			return err
		}
		if err := r.begin(ctx, s, i, ss); err != nil {
			return err
		}
		turn(ss, csv1.StageApplying)
		s.set(csv1.ConditionApplied, csv1.ReasonStagesRunning, fmt.Sprintf("stage %s of %s is being applied", ss.Name, s.release.Name))
	}
	if ss.Phase == csv1.StageApplying {
		if err := r.act(ctx, s, i, def, ss); err != nil {
			return err
		}
		turn(ss, csv1.StageWaitPost)
		r.remember(s, check{partly: true}, r.Interval/refreshes)
	}
	if err := r.await(ctx, s, def.WaitForPostCondition); err != nil {
		return err
	}
	turn(ss, csv1.StageDone)
	return r.cleanUp(ctx, s, i, ss)
}

// notYet is what a stage waits for. It is no failure, unless it takes too long.
type notYet struct{ what string }

func (n *notYet) Error() string { return n.what }

// explain says in the status which stage is how far and why, and decides when to look again.
func (r *Reconciler) explain(s *scope, ss *csv1.StageStatus, err error) error {
	var wait *notYet
	var bad *badCondition
	switch {
	case errors.As(err, &bad):
		ss.Message = reconcile.Short(err.Error())
		s.set(csv1.ConditionApplied, csv1.ReasonConditionInvalid, fmt.Sprintf("stage %s: %v; publish a corrected release and give the cluster its class", ss.Name, err))
		return reconcile.Wait(r.Interval, "%v", err)
	case errors.As(err, &wait):
		ss.Message = reconcile.Short(err.Error())
		return r.waiting(s, ss)
	case reconcile.Waits(err): // it was explained where more is known of it
		return err
	default:
		ss.Message = reconcile.Short(err.Error())
		s.set(csv1.ConditionApplied, failure(err), fmt.Sprintf("stage %s: %v", ss.Name, err))
		return err
	}
}

// failure is the reason for an error of applying.
func failure(err error) string {
	if errors.Is(err, apply.ErrRefused) {
		return csv1.ReasonRefused
	}
	return csv1.ReasonApplyFailed
}

// eager is how long a stage looks more often.
const eager = 10 * time.Second

func (r *Reconciler) waiting(s *scope, ss *csv1.StageStatus) error {
	reason, text, poll := csv1.ReasonStageWaiting, "", r.Poll
	if ss.Since != nil {
		switch took := time.Since(ss.Since.Time); {
		case took < eager:
			poll = r.Poll / 4 // most of what is waited for comes soon
		case took > r.Timeout:
			reason, text, poll = csv1.ReasonStageTimedOut, fmt.Sprintf(", for longer than %s", r.Timeout), 5*r.Poll
		}
	}
	s.set(csv1.ConditionApplied, reason, fmt.Sprintf("stage %s (%s) waits%s: %s", ss.Name, ss.Phase, text, ss.Message))
	return reconcile.Wait(poll, "stage %s", ss.Name)
}

// act applies or deletes what the stage is about.
func (r *Reconciler) act(ctx context.Context, s *scope, i int, def stack.Stage, ss *csv1.StageStatus) error {
	rendered, err := r.renderedStage(ctx, s, i)
	if err != nil {
		return err
	}
	if def.Action == stack.ActionDelete {
		return r.remove(ctx, s, rendered)
	}
	if err := r.runHooks(ctx, s, rendered, ss, before); err != nil {
		return err
	}
	if err := r.apply(ctx, s, rendered); err != nil {
		return err
	}
	return r.runHooks(ctx, s, rendered, ss, after)
}

// renderedStage is what a stage renders to.
func (r *Reconciler) renderedStage(ctx context.Context, s *scope, i int) (stack.RenderedStage, error) {
	all, err := r.render(ctx, s)
	if err != nil {
		return stack.RenderedStage{}, err
	}
	of := ofHook(all, s.hook())
	if i >= len(of) {
		return stack.RenderedStage{}, fmt.Errorf("stage %d of %s has no chart", i, s.hook())
	}
	return of[i], nil
}

func ofHook(all []stack.RenderedStage, hook string) (out []stack.RenderedStage) {
	for _, st := range all {
		if st.Hook == hook {
			out = append(out, st)
		}
	}
	return out
}
