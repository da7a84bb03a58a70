package clusteraddon

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
)

func TestBegunStages(t *testing.T) {
	add, del := stage("a", "apply"), stage("a", "delete")
	b := stage("b", "apply")
	for name, c := range map[string]struct {
		defs   []stack.Stage
		phases []csv1.StagePhase
		want   []int
	}{
		"none":                       {nil, nil, nil},
		"none yet":                   {[]stack.Stage{add, b}, []csv1.StagePhase{csv1.StageApplying, csv1.StagePending}, nil},
		"those before one":           {[]stack.Stage{add, b}, []csv1.StagePhase{csv1.StageDone, csv1.StageWaitPre}, []int{0}},
		"the one that waits":         {[]stack.Stage{add, b}, []csv1.StagePhase{csv1.StageDone, csv1.StageWaitPost}, []int{0, 1}},
		"not what was deleted since": {[]stack.Stage{add, b, del}, []csv1.StagePhase{csv1.StageDone, csv1.StageDone, csv1.StageDone}, []int{1}},
		"what is yet to be deleted":  {[]stack.Stage{add, b, del}, []csv1.StagePhase{csv1.StageDone, csv1.StageDone, csv1.StageWaitPre}, []int{0, 1}},
		"what was applied once more": {[]stack.Stage{add, del, add}, []csv1.StagePhase{csv1.StageDone, csv1.StageDone, csv1.StageWaitPost}, []int{2}},
		"more stages than known":     {[]stack.Stage{add, b}, []csv1.StagePhase{csv1.StageDone}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var is []csv1.StageStatus
			for _, p := range c.phases {
				is = append(is, csv1.StageStatus{Phase: p})
			}
			if d := cmp.Diff(c.want, slices.Sorted(maps.Keys(begunStages(c.defs, is)))); d != "" {
				t.Error(d)
			}
		})
	}
}

// A cluster that was given its old class again runs stages of the release that its status has: they wait too.
func TestReapplyBegunStagesOnTheWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		phase csv1.StagePhase
		want  bool
	}{
		"a stage waits":       {csv1.StageWaitPost, true},
		"all stages are done": {csv1.StageDone, false},
		"none has begun":      {csv1.StagePending, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := alone(), withCluster()
			s.addon.Status.Stages = []csv1.StageStatus{{Name: "a", Phase: c.phase}}
			s.content = withStages([]stack.Stage{stage("a", "apply")}, []stack.Stage{stage("a", "apply")})
			s.rendered = []stack.RenderedStage{{RuntimeHook: upgrade, Stage: stage("a", "apply")}}
			s.setReadyCondition()
			s.tracked = reconcile.Track(s.addon) // so that there is nothing to write
			if err := r.reapplyBegunStages(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got, ok := r.loadLastApply(s); ok != c.want || ok && !got.partial {
				t.Errorf("applied again: %t", ok)
			}
		})
	}
}

// The last apply is valid as long as nothing that it depends on has changed.
func TestLoadLastApply(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		want   bool
	}{
		"nothing has changed":        {func(*scope) {}, true},
		"another ClusterAddon":       {func(s *scope) { s.addon.UID = "other" }, false},
		"other values":               {func(s *scope) { s.cluster.Generation++ }, false},
		"another content":            {func(s *scope) { s.addon.Status.TargetDigest = "sha256:other" }, false},
		"another cluster of its own": {func(s *scope) { s.cluster.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := alone(), newScope(at("v0", "v1", "v1", upgrade))
			if _, ok := r.loadLastApply(s); ok {
				t.Error("it is known before it was done")
			}
			r.recordApply(s, lastApply{partial: true}, time.Hour)
			c.change(s)
			if got, ok := r.loadLastApply(s); ok != c.want || ok && !got.partial {
				t.Errorf("%+v, %t", got, ok)
			}
		})
	}
	r, s := alone(), newScope(at("v0", "v1", "v1", upgrade))
	r.recordApply(s, lastApply{}, -time.Second)
	if _, ok := r.loadLastApply(s); ok {
		t.Error("it is known for ever")
	}
}

// Unhealthy objects are checked less and less often.
func TestHealthPollInterval(t *testing.T) {
	r := alone()
	for _, c := range []struct{ age, least, most time.Duration }{
		{0, r.Poll, r.Poll},
		{5 * time.Second, r.Poll, r.Poll},
		{5 * time.Minute, 30 * time.Second, 31 * time.Second},
		{time.Hour, time.Minute, time.Minute},
	} {
		if got := r.healthPollInterval(lastApply{unhealthySince: time.Now().Add(-c.age)}); got < c.least || got > c.most {
			t.Errorf("after %s: %s", c.age, got)
		}
	}
	ails := []unhealthyObject{{message: "x"}}
	now := time.Now()
	first := firstUnhealthyTime(time.Time{}, now, ails)
	later := now.Add(time.Minute)
	if first != now || firstUnhealthyTime(first, later, ails) != first || !firstUnhealthyTime(first, later, nil).IsZero() {
		t.Error("the time of the first ailment is not kept")
	}
}
