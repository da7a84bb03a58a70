package clusteraddon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

const (
	create  = stack.AfterControlPlaneInitialized
	upgrade = stack.BeforeClusterUpgrade
)

// at makes the status of a cluster that goes from a release to another, with a stage for each phase.
func at(release, target, digest, hook string, phases ...csv1.StagePhase) csv1.ClusterAddonStatus {
	st := csv1.ClusterAddonStatus{Target: "s/" + line + target, TargetDigest: "sha256:" + digest, Hook: hook}
	if release != "" {
		st.Release = "s/" + line + release
	}
	for i, p := range phases {
		st.Stages = append(st.Stages, csv1.StageStatus{Name: []string{"cni", "csi", "ccm"}[i], Action: "apply", Phase: p})
	}
	return st
}

func TestPlanStages(t *testing.T) {
	const pending, applying, done = csv1.StagePending, csv1.StageApplying, csv1.StageDone
	two, one := []stack.Stage{stage("cni", "apply"), stage("csi", "apply")}, []stack.Stage{stage("cni", "apply")}
	single := at("", "v1", "v1", create)
	single.Stages = []csv1.StageStatus{{Name: "cluster-addon", Action: "apply", Phase: pending}}
	deleting := at("v0", "v1", "v1", upgrade, pending)
	deleting.Stages[0].Action = "delete"
	for name, c := range map[string]struct {
		have    csv1.ClusterAddonStatus
		loaded  *stack.Release
		want    csv1.ClusterAddonStatus
		planned bool // whether stages are planned again
	}{
		"a new cluster":                   {csv1.ClusterAddonStatus{}, withStages(two, one), at("", "v1", "v1", create, pending, pending), true},
		"a new cluster of an old release": {csv1.ClusterAddonStatus{}, withStages(nil, nil), single, true},
		"a new cluster without add-ons":   {csv1.ClusterAddonStatus{}, withStages([]stack.Stage{}, []stack.Stage{}), at("", "v1", "v1", create), true},
		"stages of a new cluster are running": {at("", "v1", "v1", create, done, applying), withStages(two, one), at("", "v1", "v1", create, done, applying),
			false},
		"stages of a new cluster are done": {at("v1", "v1", "v1", create, done, done), withStages(two, one), at("v1", "v1", "v1", create, done, done),
			false},
		"another class before the first was done": {at("", "v0", "v0", create, done, applying), withStages(two, one), at("", "v1", "v1", create, pending, pending),
			true},
		"another class": {at("v0", "v0", "v0", create, done, done), withStages(two, one), at("v0", "v1", "v1", upgrade, pending), true},
		"another class without stages for upgrades": {at("v0", "v0", "v0", create, done), withStages(two, nil), at("v0", "v1", "v1", upgrade, pending, pending),
			true},
		"another class that deletes":       {at("v0", "v0", "v0", create, done), withStages(two, []stack.Stage{stage("cni", "delete")}), deleting, true},
		"stages of an upgrade are running": {at("v0", "v1", "v1", upgrade, applying), withStages(two, one), at("v0", "v1", "v1", upgrade, applying), false},
		"stages of an upgrade are running, of a release without such": {
			at("v0", "v1", "v1", upgrade, done, applying), withStages(two, nil), at("v0", "v1", "v1", upgrade, done, applying), false,
		},
		"stages of an upgrade are done":     {at("v1", "v1", "v1", upgrade, done), withStages(two, one), at("v1", "v1", "v1", upgrade, done), false},
		"another class in the midst of one": {at("v0", "v2", "v2", upgrade, done), withStages(two, one), at("v0", "v1", "v1", upgrade, pending), true},
		"another class of the same content": {at("v0", "v0", "v1", upgrade, done), withStages(two, one), at("v0", "v1", "v1", upgrade, pending), true},
		"back to the former class":          {at("v1", "v2", "v2", upgrade, applying), withStages(two, one), at("v1", "v1", "v1", upgrade, pending), true},
		"the release has another content":   {at("v1", "v1", "old", upgrade, done), withStages(two, one), at("v1", "v1", "v1", upgrade, pending), true},
		"a corrected release, the first of the cluster": {
			at("", "v1", "bad", create, applying), withStages(two, one), at("", "v1", "v1", create, pending, pending), true,
		},
		"the status has another number of stages": {at("v1", "v1", "v1", upgrade, done, done, done), withStages(two, one), at("v1", "v1", "v1", upgrade, pending),
			true},
		"the status has lost its stages": {at("v1", "v1", "v1", create), withStages(two, one), at("v1", "v1", "v1", upgrade, pending), true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := alone(), newScope(*c.have.DeepCopy())
			s.content = c.loaded
			key := client.ObjectKeyFromObject(s.cluster)
			r.lastApplies.Store(key, lastApply{})
			if err := r.planStages(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(cond{"True", "Ready", "the cluster takes add-ons"}, conditionOf(s.addon, csv1.ConditionClusterReady)); d != "" {
				t.Error(d)
			}
			want := cond{}
			if c.planned {
				want = cond{"False", "StagesRunning", "the add-ons of " + line + "v1 are being applied"}
			}
			if d := cmp.Diff(want, conditionOf(s.addon, csv1.ConditionApplied)); d != "" {
				t.Error(d)
			}
			if _, remembered := r.lastApplies.Load(key); remembered == c.planned {
				t.Errorf("remembered: %t", remembered)
			}
			s.addon.Status.Conditions = nil
			if d := cmp.Diff(c.want, s.addon.Status); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSetStagePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ss := csv1.StageStatus{Phase: csv1.StageWaitPre, Message: "it waits"}
		alone().setStagePhase(&ss, csv1.StageWaitPre)
		if ss.Message == "" || ss.Since != nil {
			t.Errorf("it was in this phase: %+v", ss)
		}
		time.Sleep(time.Hour + 300*time.Millisecond)
		alone().setStagePhase(&ss, csv1.StageApplying)
		if ss.Phase != csv1.StageApplying || ss.Message != "" || ss.Since == nil || time.Since(ss.Since.Time) != 300*time.Millisecond {
			t.Errorf("%+v", ss) // times in a status have no fractions
		}
	})
}

// rendered makes rendered stages: each has an object and a Helm hook with its name.
func rendered(hook string, stages ...stack.Stage) (out []stack.RenderedStage) {
	for _, st := range stages {
		out = append(out, stack.RenderedStage{
			RuntimeHook: hook, Stage: st, Objects: []render.Object{object(st.Name + "-of-" + hook)},
			HelmHooks: []render.HelmHook{helmHook(st.Name+"-hook-of-"+hook, "", "pre-install")},
		})
	}
	return out
}

// What is not expected is deleted, so nothing that any stage has applied may be missing here.
func TestExpectedObjects(t *testing.T) {
	apply, del := func(n string) stack.Stage { return stage(n, "apply") }, func(n string) stack.Stage { return stage(n, "delete") }
	for name, c := range map[string]struct {
		create, upgrade []stack.Stage
		hook            string
		want            []string
	}{
		"objects and hooks of both hooks": {
			[]stack.Stage{apply("a")}, []stack.Stage{apply("b")}, create,
			[]string{"a-of-" + create, "a-hook-of-" + create, "b-of-" + upgrade, "b-hook-of-" + upgrade},
		},
		"not what this hook has deleted": {[]stack.Stage{apply("a"), apply("b")}, []stack.Stage{del("a")}, upgrade, []string{
			"b-of-" + create, "b-hook-of-" + create,
		}},
		"but what only the other would delete": {
			[]stack.Stage{apply("a")}, []stack.Stage{del("a")}, create, []string{"a-of-" + create, "a-hook-of-" + create},
		},
		"deleted, and applied anew after it": {
			nil, []stack.Stage{del("a"), apply("a")}, upgrade, []string{"a-of-" + upgrade, "a-hook-of-" + upgrade},
		},
		"applied, and deleted after it": {nil, []stack.Stage{apply("a"), del("a")}, upgrade, nil},
		"nothing":                       {nil, nil, create, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range expectedObjects(append(rendered(create, c.create...), rendered(upgrade, c.upgrade...)...), c.hook) {
				got = append(got, o.Name())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCountObjectsCountsWhatIsApplied(t *testing.T) {
	if n := countObjects(rendered(create, stage("a", "apply"), stage("b", "delete"), stage("c", "apply"))); n != 2 {
		t.Errorf("%d, want 2", n)
	}
}

func TestRenderedStage(t *testing.T) {
	s := newScope(at("v0", "v1", "v1", upgrade))
	s.content = withStages([]stack.Stage{stage("a", "apply")}, []stack.Stage{stage("b", "apply"), stage("c", "apply")})
	s.rendered = append(rendered(create, stage("a", "apply")), rendered(upgrade, stage("b", "apply"), stage("c", "apply"))...)
	for i, want := range []string{"b", "c"} {
		if got, err := alone().renderedStage(t.Context(), s, i); err != nil || got.Stage.Name != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	if _, err := alone().renderedStage(t.Context(), s, 2); err == nil {
		t.Error("there is no third")
	}
	s.content = withStages([]stack.Stage{stage("a", "apply")}, nil)
	if got, err := alone().renderedStage(t.Context(), s, 0); err != nil || got.Stage.Name != "a" {
		t.Errorf("without stages for upgrades: %v, %v", got, err)
	}
}
