package addon

import (
	"context"
	"slices"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
)

// refreshes is how many times what waiting stages have applied is applied again in an interval.
const refreshes = 10

// refreshed applies again what stages have applied while a later one, or one of them, waits: what it waits
// for may depend on values that were corrected since, or on an object that somebody has deleted.
func (r *Reconciler) refreshed(ctx context.Context, s *scope) error {
	st := &s.addon.Status
	if allDone(st.Stages) {
		return nil // kept does so
	}
	begun := begunStages(s.stages(), st.Stages)
	if _, ok := r.recall(s); ok || len(begun) == 0 {
		return nil
	}
	all, err := r.render(ctx, s)
	if err != nil {
		return err
	}
	of := ofHook(all, s.hook())
	for i := range st.Stages {
		if !begun[i] || i >= len(of) {
			continue
		}
		again := of[i]
		again.Objects = withoutJobs(again.Objects)
		if err := r.apply(ctx, s, again); err != nil {
			return r.explain(s, &st.Stages[i], err)
		}
		if st.Stages[i].Phase == csv1.StageDone {
			st.Stages[i].Message = ""
		}
	}
	r.remember(s, check{partly: true}, r.Interval/refreshes)
	return nil
}

func allDone(stages []csv1.StageStatus) bool {
	return !slices.ContainsFunc(stages, func(s csv1.StageStatus) bool { return s.Phase != csv1.StageDone })
}

// begunStages are those that have applied something which no later one of the same name has deleted.
func begunStages(defs []stack.Stage, is []csv1.StageStatus) map[int]bool {
	begun, last := map[int]bool{}, map[string]int{}
	for i, def := range defs {
		if i >= len(is) || is[i].Phase != csv1.StageDone && is[i].Phase != csv1.StageWaitPost {
			continue
		}
		if at, ok := last[nameOf(def)]; ok {
			delete(begun, at)
		}
		if last[nameOf(def)] = i; def.Action == stack.ActionApply {
			begun[i] = true
		}
	}
	return begun
}
