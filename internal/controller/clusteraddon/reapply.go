package clusteraddon

import (
	"context"
	"slices"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
)

// reappliesPerInterval is how many times in an interval the objects of begun stages are applied again.
const reappliesPerInterval = 10

// reapplyBegunStages applies the objects of begun stages again while a stage waits: what it waits for may depend on
// values that were corrected since, or on an object that somebody has deleted.
func (r *Reconciler) reapplyBegunStages(ctx context.Context, s *scope) error {
	st := &s.addon.Status
	if allDone(st.Stages) {
		return nil // maintainObjects applies them again
	}
	begun := begunStages(s.stages(), st.Stages)
	if _, ok := r.loadLastApply(s); ok || len(begun) == 0 {
		return nil
	}
	all, err := r.renderAddons(ctx, s)
	if err != nil {
		return err
	}
	of := stagesOfRuntimeHook(all, s.runtimeHook())
	for i := range st.Stages {
		if !begun[i] || i >= len(of) {
			continue
		}
		again := of[i]
		again.Objects = withoutJobs(again.Objects)
		if err := r.applyStage(ctx, s, again); err != nil {
			return r.explainStageError(s, &st.Stages[i], err)
		}
		if st.Stages[i].Phase == csv1.StageDone {
			st.Stages[i].Message = ""
		}
	}
	r.recordApply(s, lastApply{partial: true}, r.Interval/reappliesPerInterval)
	return nil
}

// allDone reports whether all stages are done.
func allDone(stages []csv1.StageStatus) bool {
	return !slices.ContainsFunc(stages, func(s csv1.StageStatus) bool { return s.Phase != csv1.StageDone })
}

// begunStages returns the stages that have applied objects which no later stage of the same name has deleted, by their
// index.
func begunStages(defs []stack.Stage, is []csv1.StageStatus) map[int]bool {
	begun, last := map[int]bool{}, map[string]int{}
	for i, def := range defs {
		if i >= len(is) || is[i].Phase != csv1.StageDone && is[i].Phase != csv1.StageWaitPost {
			continue
		}
		if at, ok := last[stageName(def)]; ok {
			delete(begun, at)
		}
		if last[stageName(def)] = i; def.Action == stack.ActionApply {
			begun[i] = true
		}
	}
	return begun
}
