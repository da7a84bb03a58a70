package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

func TestHooksFor(t *testing.T) {
	for name, c := range map[string]struct {
		hooks []render.HelmHook
		want  []string
	}{
		"none":                     {nil, nil},
		"those of the event":       {[]render.HelmHook{helmHook("a", "", "pre-install"), helmHook("b", "", "pre-upgrade"), helmHook("c", "", "post-install")}, []string{"b"}},
		"one of many events":       {[]render.HelmHook{helmHook("a", "", "pre-install", "pre-upgrade")}, []string{"a"}},
		"never on a deletion":      {[]render.HelmHook{helmHook("a", "", "pre-delete", "post-delete", "test", "pre-rollback")}, nil},
		"by weight, as numbers":    {[]render.HelmHook{helmHook("a", "10", "pre-upgrade"), helmHook("b", "9", "pre-upgrade"), helmHook("c", "-5", "pre-upgrade")}, []string{"c", "b", "a"}},
		"none is zero":             {[]render.HelmHook{helmHook("a", "1", "pre-upgrade"), helmHook("b", "", "pre-upgrade"), helmHook("c", "-1", "pre-upgrade")}, []string{"c", "b", "a"}},
		"no number is zero":        {[]render.HelmHook{helmHook("a", "1", "pre-upgrade"), helmHook("b", "heavy", "pre-upgrade"), helmHook("c", "-1", "pre-upgrade")}, []string{"c", "b", "a"}},
		"the same weight, by name": {[]render.HelmHook{helmHook("b", "1", "pre-upgrade"), helmHook("c", "1", "pre-upgrade"), helmHook("a", "1", "pre-upgrade")}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, h := range hooksFor(stack.RenderedStage{Hooks: c.hooks}, "pre-upgrade") {
				got = append(got, h.Name())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	for hook, want := range map[string][]string{create: {"pre-install", "post-install"}, upgrade: {"pre-upgrade", "post-upgrade"}} {
		s := newScope(csv1.ClusterAddonStatus{Hook: hook})
		s.loaded = withStages([]stack.Stage{stage("a", "apply")}, nil) // whose stages they are does not matter
		if d := cmp.Diff(want, []string{before.event(s), after.event(s)}); d != "" {
			t.Error(hook, d)
		}
	}
}

// Two runs that differ in anything have different names, and one run always the same.
func TestRunOf(t *testing.T) {
	st := stack.RenderedStage{Stage: stage("cni", "apply")}
	of := func(change func(*scope)) string {
		s := newScope(at("v0", "v1", "v1", upgrade))
		change(s)
		return runOf(s, st, "pre-upgrade")
	}
	same := of(func(*scope) {})
	if of(func(s *scope) { s.addon.Status.Stages = []csv1.StageStatus{{Phase: csv1.StageDone}} }) != same || len(same) != 16 {
		t.Errorf("%q", same)
	}
	seen := map[string]string{same: "the same"}
	for name, run := range map[string]string{
		"another cluster":      of(func(s *scope) { s.addon.UID = "other" }),
		"from another release": of(func(s *scope) { s.addon.Status.Release = "s/other" }),
		"to another content":   of(func(s *scope) { s.addon.Status.TargetDigest = "sha256:other" }),
		"another event":        runOf(newScope(at("v0", "v1", "v1", upgrade)), st, "post-upgrade"),
		"another stage":        runOf(newScope(at("v0", "v1", "v1", upgrade)), stack.RenderedStage{Stage: stage("csi", "apply")}, "pre-upgrade"),
	} {
		if other, ok := seen[run]; ok {
			t.Errorf("%s and %s are one run", name, other)
		}
		seen[run] = name
	}
}

func TestEnded(t *testing.T) {
	pod := func(apiVersion, phase string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Pod", "metadata": map[string]any{"name": "p"}}}
		if phase != "" {
			_ = unstructured.SetNestedField(u.Object, phase, "status", "phase")
		}
		return u
	}
	for name, c := range map[string]struct {
		live    *unstructured.Unstructured
		want    bool
		message string
	}{
		"a pod that has not begun":         {pod("v1", ""), false, "it is Pending"},
		"a pod that runs":                  {pod("v1", "Running"), false, "it is Running"},
		"a pod that has failed":            {pod("v1", "Failed"), false, "it is Failed"},
		"a pod that has done its work":     {pod("v1", "Succeeded"), true, ""},
		"something else that is called so": {pod("example.org/v1", "Running"), true, ""},
		"a thing without a state":          {&unstructured.Unstructured{Object: object("x").Value}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ok, message := ended(c.live)
			if ok != c.want || (!ok && message != c.message) {
				t.Errorf("%t, %q; want %t, %q", ok, message, c.want, c.message)
			}
		})
	}
}
