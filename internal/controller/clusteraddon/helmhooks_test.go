package clusteraddon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

func TestHelmHooksFor(t *testing.T) {
	for name, c := range map[string]struct {
		hooks []render.HelmHook
		want  []string
	}{
		"none": {nil, nil},
		"those of the event": {[]render.HelmHook{helmHook("a", "", "pre-install"), helmHook("b", "", "pre-upgrade"), helmHook("c", "", "post-install")},
			[]string{"b"}},
		"one of many events":  {[]render.HelmHook{helmHook("a", "", "pre-install", "pre-upgrade")}, []string{"a"}},
		"never on a deletion": {[]render.HelmHook{helmHook("a", "", "pre-delete", "post-delete", "test", "pre-rollback")}, nil},
		"by weight, as numbers": {[]render.HelmHook{helmHook("a", "10", "pre-upgrade"), helmHook("b", "9", "pre-upgrade"), helmHook("c", "-5", "pre-upgrade")},
			[]string{"c", "b", "a"}},
		"none is zero": {[]render.HelmHook{helmHook("a", "1", "pre-upgrade"), helmHook("b", "", "pre-upgrade"), helmHook("c", "-1", "pre-upgrade")},
			[]string{"c", "b", "a"}},
		"no number is zero": {[]render.HelmHook{helmHook("a", "1", "pre-upgrade"), helmHook("b", "heavy", "pre-upgrade"), helmHook("c", "-1", "pre-upgrade")},
			[]string{"c", "b", "a"}},
		"the same weight, by name": {[]render.HelmHook{helmHook("b", "1", "pre-upgrade"), helmHook("c", "1", "pre-upgrade"), helmHook("a", "1", "pre-upgrade")},
			[]string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, h := range helmHooksFor(stack.RenderedStage{HelmHooks: c.hooks}, "pre-upgrade") {
				got = append(got, h.Name())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestHelmEvent(t *testing.T) {
	for _, c := range []struct {
		install *bool
		want    []string
	}{{ptr.To(true), []string{"pre-install", "post-install"}}, {ptr.To(false), []string{"pre-upgrade", "post-upgrade"}}, {nil,
		[]string{"pre-upgrade", "post-upgrade"}}} {
		ss := &csv1.StageStatus{Install: c.install}
		if d := cmp.Diff(c.want, []string{beforeObjects.helmEvent(ss), afterObjects.helmEvent(ss)}); d != "" {
			t.Error(d)
		}
	}
}

// Two runs that differ in anything have different IDs, and one run always has the same.
func TestHelmHookRunID(t *testing.T) {
	st := stack.RenderedStage{Stage: stage("cni", "apply")}
	of := func(change func(*scope)) string {
		s := newScope(at("v0", "v1", "v1", upgrade))
		change(s)
		return mustRunID(t, s, st, "pre-upgrade", "a")
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
		"another event":        mustRunID(t, newScope(at("v0", "v1", "v1", upgrade)), st, "post-upgrade", "a"),
		"another stage":        mustRunID(t, newScope(at("v0", "v1", "v1", upgrade)), stack.RenderedStage{Stage: stage("csi", "apply")}, "pre-upgrade", "a"),
		"another object":       mustRunID(t, newScope(at("v0", "v1", "v1", upgrade)), st, "pre-upgrade", "b"),
	} {
		if other, ok := seen[run]; ok {
			t.Errorf("%s and %s are one run", name, other)
		}
		seen[run] = name
	}
}

func mustRunID(t *testing.T, s *scope, st stack.RenderedStage, event, hook string) string {
	t.Helper()
	run, err := helmHookRunID(s, st, event, helmHook(hook, "", event))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Only Jobs and Pods can fail for good, and a failed hook is run again after a while.
func TestFailedHelmHooks(t *testing.T) {
	made := func(kind string, age time.Duration, status map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": status}}
		u.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age)))
		return u
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Suspended", "status": "True"}, map[string]any{"type": kind, "status": status}}}
	}
	r := alone()
	for name, c := range map[string]struct {
		live           *unstructured.Unstructured
		failed, repeat bool
	}{
		"a job that failed long ago":  {made("Job", 2*r.Interval, condition("Failed", "True")), true, true},
		"a job that failed just now":  {made("Job", r.Interval/2, condition("Failed", "True")), true, false},
		"a job that has not failed":   {made("Job", 2*r.Interval, condition("Failed", "False")), false, false},
		"a job that is done":          {made("Job", 2*r.Interval, condition("Complete", "True")), false, false},
		"a job that runs":             {made("Job", 2*r.Interval, nil), false, false},
		"a pod that failed long ago":  {made("Pod", 2*r.Interval, map[string]any{"phase": "Failed"}), true, true},
		"a pod that is done":          {made("Pod", 2*r.Interval, map[string]any{"phase": "Succeeded"}), false, false},
		"something else with a phase": {made("Claim", 2*r.Interval, map[string]any{"phase": "Failed"}), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if f, again := hasFailed(c.live), r.needsRetry(c.live); f != c.failed || again != c.repeat {
				t.Errorf("failed %t, to be repeated %t", f, again)
			}
		})
	}
}

func TestIsCompleted(t *testing.T) {
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
			ok, message := isCompleted(c.live)
			if ok != c.want || (!ok && message != c.message) {
				t.Errorf("%t, %q; want %t, %q", ok, message, c.want, c.message)
			}
		})
	}
}
