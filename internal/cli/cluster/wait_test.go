package cluster

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// aWorkload is a cluster whose status is about its spec.
func aWorkload(phase v1alpha1.Phase, message string, change ...func(*v1alpha1.WorkloadCluster)) *v1alpha1.WorkloadCluster {
	c := &v1alpha1.WorkloadCluster{}
	clearServerFields(c)
	c.Name, c.Namespace, c.UID, c.Generation = "demo", "default", "u1", 2
	c.Status = v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Phase: phase, Message: message}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: 2, Reason: "Progressing"}
	if phase == v1alpha1.PhaseReady {
		ready.Status = metav1.ConditionTrue
	}
	c.Status.Conditions = []metav1.Condition{ready}
	for _, f := range change {
		f(c)
	}
	return c
}

func mustUnstructured(t *testing.T, v any) *unstructured.Unstructured {
	t.Helper()
	u, err := objects.ToUnstructured(v)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func acting(who v1alpha1.Actor, step string) func(*v1alpha1.WorkloadCluster) {
	return func(c *v1alpha1.WorkloadCluster) { c.Status.Actor, c.Status.NextStep = who, step }
}

func stale(c *v1alpha1.WorkloadCluster)          { c.Status.ObservedGeneration = 1 }
func staleCondition(c *v1alpha1.WorkloadCluster) { c.Status.Conditions[0].ObservedGeneration = 1 }
func leavingNow(c *v1alpha1.WorkloadCluster) {
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func TestWaitGoal(t *testing.T) {
	for name, tt := range map[string]struct {
		goal     string
		cluster  *v1alpha1.WorkloadCluster
		reached  bool
		hopeless string
	}{
		"ready":                      {"ready", aWorkload(v1alpha1.PhaseReady, ""), true, ""},
		"being made":                 {"ready", aWorkload(v1alpha1.PhaseCreating, ""), false, ""},
		"ready for the old spec":     {"ready", aWorkload(v1alpha1.PhaseReady, "", stale), false, ""},
		"condition for the old spec": {"ready", aWorkload(v1alpha1.PhaseReady, "", staleCondition), false, ""},
		"no status at all":           {"ready", aWorkload("", "", func(c *v1alpha1.WorkloadCluster) { c.Status = v1alpha1.WorkloadClusterStatus{} }), false, ""},
		"stalled": {"ready", aWorkload(v1alpha1.PhaseStalled, "No such stack.", acting(v1alpha1.Customer, "choose another")), false,
			`cluster "demo" is stalled: No such stack; you must act: choose another`},
		"stalled, for the operator": {"ready", aWorkload(v1alpha1.PhaseStalled, "No room", acting(v1alpha1.PlatformOperator, "")), false,
			`cluster "demo" is stalled: No room; the plane's operator must act`},
		"stalled with the old spec": {"ready", aWorkload(v1alpha1.PhaseStalled, "x", stale), false, ""},
		"paused":                    {"ready", aWorkload(v1alpha1.PhasePaused, ""), false, `cluster "demo" is paused, so nothing goes on; set spec.paused to false`},
		"leaving":                   {"ready", aWorkload(v1alpha1.PhaseDeleting, "", leavingNow), false, `cluster "demo" is being deleted, so it will not be ready`},
		"phase":                     {"phase=creating", aWorkload(v1alpha1.PhaseCreating, ""), true, ""},
		"phase of the old spec":     {"phase=Creating", aWorkload(v1alpha1.PhaseCreating, "", stale), false, ""},
		"phase stalled":             {"phase=Stalled", aWorkload(v1alpha1.PhaseStalled, ""), true, ""},
		"phase deleting":            {"phase=Deleting", aWorkload(v1alpha1.PhaseUpdating, "", leavingNow), false, ""},
		"condition false":           {"condition=Ready=false", aWorkload(v1alpha1.PhaseCreating, ""), true, ""},
		"condition missing":         {"condition=Reachable", aWorkload(v1alpha1.PhaseReady, ""), false, ""},
		"deletion, there":           {"deleted", aWorkload(v1alpha1.PhaseStalled, "x"), false, ""},
		"deletion, stalled":         {"deleted", aWorkload(v1alpha1.PhaseStalled, "x", leavingNow), false, `cluster "demo" is stalled: x`},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := parseGoal(tt.goal)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.isReached(tt.cluster); got != tt.reached {
				t.Errorf("reached: %t", got)
			}
			if tt.reached {
				return
			}
			why, mayPass := g.blockedReason(tt.cluster)
			if got := output.Message(why); got != tt.hopeless {
				t.Errorf("hopeless: %q, want %q", got, tt.hopeless)
			}
			if mayPass != (tt.cluster.Status.Phase == v1alpha1.PhaseStalled && why != nil && tt.cluster.Status.Actor != v1alpha1.Customer) {
				t.Errorf("it may pass: %t", mayPass)
			}
		})
	}
	if g := (goal{deleted: true, uid: "u0"}); !g.isReached(aWorkload(v1alpha1.PhaseReady, "")) {
		t.Error("another cluster of the same name counts as the one that was deleted")
	}
}

func TestWaitGoalRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `--for "" is not possible; choose ready, deleted, phase=PHASE or condition=TYPE[=STATUS]`,
		"condition":           `--for "condition" is not possible; choose ready, deleted, phase=PHASE or condition=TYPE[=STATUS]`,
		"condition=Ready=yes": `--for "condition=Ready=yes" is not possible; choose ready, deleted, phase=PHASE or condition=TYPE[=STATUS]`,
		"phase=Done":          `there is no phase "Done"; choose from: Pending, Creating, Ready, Updating, Degraded, Stalled, Paused, Deleting`,
	} {
		if _, err := parseGoal(text); output.Message(err) != want || exit.Code(err) != exit.Usage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// fakeSource has a script: each list, and each watch after it, is a step. Events come a second apart.
type fakeSource struct {
	t     *testing.T
	steps []step
	lists int
}

type step struct {
	list      []*v1alpha1.WorkloadCluster
	listError error

	watchError error
	events     []watch.Event
	hang       bool // the watch does not end
}

func (f *fakeSource) List(context.Context) (*unstructured.UnstructuredList, error) {
	if f.lists++; f.lists > len(f.steps) {
		f.t.Fatal("it lists more often than it should")
	}
	s := f.steps[f.lists-1]
	l := &unstructured.UnstructuredList{}
	for _, c := range s.list {
		l.Items = append(l.Items, *mustUnstructured(f.t, c))
	}
	return l, s.listError
}

func (f *fakeSource) Watch(context.Context, string) (watch.Interface, error) {
	s := f.steps[f.lists-1]
	if s.watchError != nil {
		return nil, s.watchError
	}
	if len(s.events) == 0 && !s.hang {
		return nil, apierrors.NewResourceExpired("too old")
	}
	w := watch.NewRaceFreeFake()
	go func() {
		for _, e := range s.events {
			time.Sleep(time.Second)
			w.Action(e.Type, e.Object)
		}
		if !s.hang {
			w.Stop()
		}
	}()
	return w, nil
}

func modified(t *testing.T, c *v1alpha1.WorkloadCluster) watch.Event {
	return watch.Event{Type: watch.Modified, Object: mustUnstructured(t, c)}
}

func TestWaitStream(t *testing.T) {
	creating, ready := aWorkload(v1alpha1.PhaseCreating, "the control plane is being made"), aWorkload(v1alpha1.PhaseReady, "all is\x1b well")
	unreachable := &url.Error{Op: "Get", URL: "x", Err: errors.New("refused")}
	for name, tt := range map[string]struct {
		goal  goal
		steps func(t *testing.T) []step
		code  int
		want  string
		said  string
	}{
		"made": {readyGoal, func(t *testing.T) []step {
			return []step{
				{list: []*v1alpha1.WorkloadCluster{aWorkload("", "", stale)},
					events: []watch.Event{modified(t, creating), modified(t, creating), {Type: watch.Bookmark, Object: mustUnstructured(t, ready)}, modified(t, ready)},
					hang:   true},
			}
		}, exit.OK, "   0.0s  Pending    the plane has not looked at it yet\n   1.0s  Creating   the control plane is being made\n   4.0s  Ready      all is well\nCluster demo is ready. Get access with: polder kubeconfig demo --merge\n", ""},
		"a watch that is too old, and one that ends": {readyGoal, func(t *testing.T) []step {
			return []step{
				{list: []*v1alpha1.WorkloadCluster{creating}, events: []watch.Event{{Type: watch.Error, Object: &apierrors.NewResourceExpired("old").ErrStatus}},
					hang: true},
				{list: []*v1alpha1.WorkloadCluster{creating}, events: []watch.Event{modified(t, creating)}}, {list: []*v1alpha1.WorkloadCluster{ready}},
			}
		}, exit.OK, "   0.0s  Creating   the control plane is being made\n   4.0s  Ready      all is well\nCluster demo is ready. Get access with: polder kubeconfig demo --merge\n", ""},
		"the plane is away for a while": {readyGoal, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{creating}}, {listError: unreachable}, {listError: unreachable}, {list: []*v1alpha1.WorkloadCluster{ready}}}
		}, exit.OK, "   0.0s  Creating   the control plane is being made\n   1.0s  -          the plane does not answer, trying again: Get \"x\": refused\n   7.0s  Ready      all is well\nCluster demo is ready. Get access with: polder kubeconfig demo --merge\n", ""},
		"the plane is not there": {readyGoal, func(*testing.T) []step { return []step{{listError: unreachable}} }, exit.Failure, "", `Get "x": refused`},
		"the plane refuses":      {readyGoal, func(*testing.T) []step { return []step{{listError: apierrors.NewUnauthorized("who?")}} }, exit.Failure, "", "who?"},
		"the plane refuses the watch": {readyGoal, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{creating}, watchError: apierrors.NewUnauthorized("who?")}}
		}, exit.Failure, "   0.0s  Creating   the control plane is being made\n", "who?"},
		"the plane refuses for a while": {readyGoal, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{creating}}, {listError: apierrors.NewUnauthorized("who?")}, {list: []*v1alpha1.WorkloadCluster{ready}}}
		}, exit.OK, "   0.0s  Creating   the control plane is being made\n   1.0s  -          the plane refuses, trying again: who?\n   3.0s  Ready      all is well\nCluster demo is ready. Get access with: polder kubeconfig demo --merge\n", ""},
		"the plane refuses from now on": {readyGoal, func(*testing.T) []step {
			s := []step{{list: []*v1alpha1.WorkloadCluster{creating}}}
			for range 6 { // after 1, 3, 7, 15, 30 and 45 s
				s = append(s, step{listError: apierrors.NewUnauthorized("who?")})
			}
			return s
		}, exit.Failure, "   0.0s  Creating   the control plane is being made\n   1.0s  -          the plane refuses, trying again: who?\n", "who?"},
		"stalled, and then not": {readyGoal, func(t *testing.T) []step {
			return []step{
				{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseStalled, "no answer", acting(v1alpha1.PlatformOperator, ""))},
					events: []watch.Event{modified(t, creating)}, hang: true},
			}
		}, exit.Timeout, "   0.0s  Stalled    no answer\n   1.0s  Creating   the control plane is being made\n",
			`cluster "demo" is not ready after 1m0s: Creating: the control plane is being made; it may still be; come back with: polder wait demo`},
		"stalled, and nobody helps": {readyGoal, func(t *testing.T) []step {
			return []step{
				{list: []*v1alpha1.WorkloadCluster{creating},
					events: []watch.Event{modified(t, aWorkload(v1alpha1.PhaseStalled, "no answer", acting(v1alpha1.PlatformOperator, "")))}, hang: true},
			}
		}, exit.Failure, "   0.0s  Creating   the control plane is being made\n   1.0s  Stalled    no answer\n",
			`cluster "demo" is stalled: no answer; the plane's operator must act`},
		"stalled": {readyGoal, func(t *testing.T) []step {
			return []step{
				{list: []*v1alpha1.WorkloadCluster{creating},
					events: []watch.Event{modified(t, aWorkload(v1alpha1.PhaseStalled, "no room", acting(v1alpha1.Customer, "take fewer")))}, hang: true},
			}
		}, exit.Failure, "   0.0s  Creating   the control plane is being made\n   1.0s  Stalled    no room\n",
			`cluster "demo" is stalled: no room; you must act: take fewer`},
		"late": {readyGoal, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseCreating, "slow.", acting(v1alpha1.PlatformOperator, "look"))}, hang: true}}
		}, exit.Timeout, "   0.0s  Creating   slow.\n",
			`cluster "demo" is not ready after 1m0s: Creating: slow; the plane's operator must act: look; it may still be; come back with: polder wait demo`},
		"never there":     {readyGoal, func(*testing.T) []step { return []step{{}} }, exit.Failure, "", errNoCluster.Error()},
		"already deleted": {deletedGoal, func(*testing.T) []step { return []step{{}} }, exit.OK, "Cluster demo is gone.\n", ""},
		"deleted meanwhile": {readyGoal, func(t *testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{creating}, events: []watch.Event{{Type: watch.Deleted, Object: mustUnstructured(t, creating)}}, hang: true}}
		}, exit.Failure, "   0.0s  Creating   the control plane is being made\n", `cluster "demo" was deleted meanwhile`},
		"deleted between two watches": {deletedGoal, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseDeleting, "machines go", leavingNow)}}, {}}
		}, exit.OK, "   0.0s  Deleting   machines go\nCluster demo is gone.\n", ""},
		"deleted and made again": {goal{deleted: true, uid: types.UID("u0")}, func(*testing.T) []step {
			return []step{{list: []*v1alpha1.WorkloadCluster{creating}}}
		}, exit.OK, "Cluster demo is gone.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				v := &waitLoop{name: "demo", goal: tt.goal, out: &out, now: time.Now, begin: time.Now(), hint: func(c string) string { return "polder " + c }}
				err := v.wait(t.Context(), &fakeSource{t: t, steps: tt.steps(t)}, "default", time.Minute)
				if exit.Code(err) != tt.code || output.Message(err) != tt.said {
					t.Errorf("it ends with %d: %v", exit.Code(err), err)
				}
				if d := cmp.Diff(tt.want, out.String()); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

// Nothing is asked in a hurry, however often watches end.
func TestWaitDoesNotHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{t: t, steps: make([]step, 100)}
		for i := range source.steps {
			source.steps[i].list = []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseCreating, "")}
		}
		v := &waitLoop{name: "demo", goal: readyGoal, out: &bytes.Buffer{}, now: time.Now, begin: time.Now(), hint: func(c string) string { return c }}
		if err := v.wait(t.Context(), source, "default", 5*time.Minute); exit.Code(err) != exit.Timeout || source.lists > 25 {
			t.Errorf("after %d lists: %v", source.lists, err)
		}
	})
}

func TestWaitInterrupted(t *testing.T) {
	for g, want := range map[goal]string{
		readyGoal:   "The cluster goes on being made. Come back with: polder wait demo\n",
		deletedGoal: "The cluster goes on being deleted. Come back with: polder wait demo --for deleted\n",

		{phase: v1alpha1.PhasePaused}:                             "The cluster goes on being made. Come back with: polder wait demo --for phase=Paused\n",
		{condition: "Reachable", status: metav1.ConditionUnknown}: "The cluster goes on being made. Come back with: polder wait demo --for condition=Reachable=Unknown\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, cancel)
			var out bytes.Buffer
			v := &waitLoop{name: "demo", goal: g, out: &out, now: time.Now, begin: time.Now(), hint: func(c string) string { return "polder " + c }}
			err := v.wait(ctx, &fakeSource{t: t, steps: []step{{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseCreating, "x")}, hang: true}}}, "default",
				time.Minute)
			if exit.Code(err) != exit.Interrupted || output.Message(err) != "" || !strings.HasSuffix(out.String(), want) {
				t.Errorf("it ends with %d, %v:\n%s", exit.Code(err), err, out.String())
			}
		})
	}
}

func TestWaitCommand(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "it is well"))
	out, errs, code := f.runWithInput("", "wait", "demo")
	if code != exit.OK || errs != "" ||
		!strings.HasSuffix(strings.ReplaceAll(out, " --data-dir "+f.Dir, ""),
			"s  Ready      it is well\nCluster demo is ready. Get access with: polder kubeconfig demo --merge\n") {
		t.Errorf("wait ends with %d: %s%s", code, out, errs)
	}
	if want := "GET " + clusterPath + "?fieldSelector=metadata.name%3Ddemo"; f.requests[0] != want {
		t.Errorf("it asks %s, want %s", f.requests[0], want)
	}
	f.expectOutput(exit.Usage, "", `there is no cluster "other" in namespace default; see which there are with: polder get`, "wait", "other")
	f.expectOutput(exit.OK, "Cluster other is gone.\n", "", "wait", "other", "--for", "deleted")
	f.expectOutput(exit.Usage, "",
		`--timeout "0" is no time that fits here; write, for example, 90s or 20m; see: polder wait --help`, "wait", "demo",
		"--timeout", "0")
	f.expectOutput(exit.Usage, "", "polder wait takes the name of a cluster, but got 0 arguments; see: polder wait --help", "wait")
	f.refuse["GET "+clusterPath] = refusal(403, metav1.StatusReasonForbidden, "",
		`workloadclusters.polder.dev is forbidden: User "anna" cannot list resource "workloadclusters" in API group "polder.dev" in the namespace "default"`)
	f.expectOutput(exit.Failure, "",
		`waiting for cluster "demo": anna may not list workloadclusters in namespace default; ask the plane's operator for the right, or choose another namespace with -n`, "wait", "demo")
}
