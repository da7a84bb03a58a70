package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/finding"
)

// requeue returns after what time a run that ended with an error is tried again: 0 with backoff.
func requeue(t *testing.T, err error) time.Duration {
	t.Helper()
	result, again := reconcile.Run(t.Context(), 0, func(context.Context, int) error { return err })
	if (again == nil) != reconcile.IsWait(err) {
		t.Errorf("error %v", again)
	}
	return result.RequeueAfter
}

func TestExplainStageError(t *testing.T) {
	refusal := &apply.RefusedError{Reasons: []error{errBroken}}
	explained := reconcile.Wait(7*time.Second, "what was explained")
	for name, c := range map[string]struct {
		err     error
		want    cond
		message string // of the stage
		after   time.Duration
	}{
		"a condition that can never be true": {
			fmt.Errorf("x: %w", &invalidConditionError{errBroken}),
			cond{"False", "ConditionInvalid", "stage cni: x: broken; publish a corrected release and give the cluster its class"}, "x: broken", time.Hour,
		},
		"something is not there yet": {
			fmt.Errorf("x: %w", &notReadyError{"the\nnode"}), cond{"False", "StageWaiting", "stage cni (waitingForPreCondition) waits: x: the node"}, "x: the node",
			time.Second,
		},
		"it was explained already": {explained, cond{}, "old", 7 * time.Second},
		"an object is refused":     {fmt.Errorf("x: %w", refusal), cond{"False", "Refused", "stage cni: x: broken"}, "x: broken", 0},
		"anything else":            {errBroken, cond{"False", "ApplyFailed", "stage cni: broken"}, "broken", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, ss := newScope(csv1.ClusterAddonStatus{}), &csv1.StageStatus{Name: "cni", Phase: csv1.StageWaitPre, Message: "old"}
			err := alone().explainStageError(s, ss, c.err)
			if got := requeue(t, err); got != c.after {
				t.Errorf("again after %s, want %s", got, c.after)
			}
			if c.after == 0 && !errors.Is(err, c.err) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(c.want, conditionOf(s.addon, csv1.ConditionApplied)); d != "" {
				t.Error(d)
			}
			if ss.Message != c.message {
				t.Errorf("message %q, want %q", ss.Message, c.message)
			}
		})
	}
}

func TestExplainAfterStages(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		want  cond
		after time.Duration
	}{
		"something leaves slowly":  {&notReadyError{"one leaves"}, cond{"False", "StageWaiting", "after all stages: one leaves"}, time.Second},
		"it was explained already": {reconcile.Wait(7*time.Second, "x"), cond{}, 7 * time.Second},
		"an object is refused":     {apply.ErrRefused, cond{"False", "Refused", "refused"}, 0},
		"anything else":            {errBroken, cond{"False", "ApplyFailed", "broken"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(csv1.ClusterAddonStatus{})
			if got := requeue(t, alone().explainAfterStages(s, c.err)); got != c.after {
				t.Errorf("again after %s, want %s", got, c.after)
			}
			if d := cmp.Diff(c.want, conditionOf(s.addon, csv1.ConditionApplied)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExplainRenderError(t *testing.T) {
	found := finding.List{{File: "x", Severity: finding.Error, Rule: "y", What: "z"}}
	for name, c := range map[string]struct {
		err    error
		reason string
		after  time.Duration
	}{
		"the renderer fails":      {errBroken, csv1.ReasonApplyFailed, 0},
		"the release has a fault": {fmt.Errorf("x: %w", found), csv1.ReasonInvalid, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(csv1.ClusterAddonStatus{})
			if got := requeue(t, alone().explainRenderError(s, c.err)); got != c.after {
				t.Errorf("again after %s, want %s", got, c.after)
			}
			if d := cmp.Diff(cond{"False", c.reason, c.err.Error()}, conditionOf(s.addon, csv1.ConditionApplied)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A stage that waits for too long says so, and polls less often. It still waits.
func TestReportStageWaiting(t *testing.T) {
	const soon = "stage cni (waitingForPreCondition) waits: the node"
	const late = "stage cni (waitingForPreCondition) waits, for longer than 1m0s: the node"
	for name, c := range map[string]struct {
		waited time.Duration // negative if it is not known
		want   cond
		after  time.Duration
	}{
		"nobody knows since when": {-1, cond{"False", "StageWaiting", soon}, time.Second},
		"it has just begun":       {0, cond{"False", "StageWaiting", soon}, 250 * time.Millisecond},
		"not so long":             {fastPollPeriod, cond{"False", "StageWaiting", soon}, time.Second},
		"as long as it may":       {time.Minute, cond{"False", "StageWaiting", soon}, time.Second},
		"longer than it should":   {time.Minute + 1, cond{"False", "StageTimedOut", late}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ss := newScope(csv1.ClusterAddonStatus{}), &csv1.StageStatus{Name: "cni", Phase: csv1.StageWaitPre, Message: "the node"}
				if c.waited >= 0 {
					ss.Since = &metav1.Time{Time: time.Now()}
					time.Sleep(c.waited)
				}
				if got := requeue(t, alone().reportStageWaiting(s, ss)); got != c.after {
					t.Errorf("again after %s, want %s", got, c.after)
				}
				if d := cmp.Diff(c.want, conditionOf(s.addon, csv1.ConditionApplied)); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestDescribeUnhealthy(t *testing.T) {
	all := []unhealthyObject{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, unhealthyObject{apply.Ref{Kind: "Deployment", Namespace: "x", Name: name}, "it waits"})
	}
	three := "Deployment x/a: it waits; Deployment x/b: it waits; Deployment x/c: it waits"
	for n, want := range map[int]string{0: "", 1: "Deployment x/a: it waits", 3: three, 4: three + "; and 1 more", 5: three + "; and 2 more"} {
		if got := describeUnhealthy(all[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDescribePrevious(t *testing.T) {
	if got := describePrevious(""); got != "" {
		t.Errorf("%q", got)
	}
	if got := describePrevious("s/x"); got != ", which follows s/x" {
		t.Errorf("%q", got)
	}
}

func TestMayAddKinds(t *testing.T) {
	for name, c := range map[string]struct {
		result apply.Result
		want   bool
	}{
		"a definition that is new":       {apply.Result{Ref: apply.Ref{Kind: "CustomResourceDefinition"}, Change: apply.Created}, true},
		"a definition that was changed":  {apply.Result{Ref: apply.Ref{Kind: "CustomResourceDefinition"}, Change: apply.Updated}, true},
		"a definition that is as it was": {apply.Result{Ref: apply.Ref{Kind: "CustomResourceDefinition"}, Change: apply.Unchanged}, false},
		"a definition that was trusted":  {apply.Result{Ref: apply.Ref{Kind: "CustomResourceDefinition"}}, false},
		"a definition that failed":       {apply.Result{Ref: apply.Ref{Kind: "CustomResourceDefinition"}, Err: errBroken, Change: apply.Created}, false},
		"something else":                 {apply.Result{Ref: apply.Ref{Kind: "ConfigMap"}, Change: apply.Created}, false},
	} {
		if got := mayAddKinds(c.result); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestMayHoldUserObjects(t *testing.T) {
	for ref, want := range map[apply.Ref]bool{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
		{Group: "example.org", Kind: "CustomResourceDefinition"}:          false,
		{Group: "apiextensions.k8s.io", Kind: "Other"}:                    false,
		{Kind: "Namespace"}:                       true,
		{Group: "example.org", Kind: "Namespace"}: false,
		{Kind: "ConfigMap"}:                       false,
	} {
		if got := mayHoldUserObjects(ref); got != want {
			t.Errorf("%v: %t, want %t", ref, got, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	is := func(name, reason, message string) metav1.Condition {
		c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: 1}
		if reason == csv1.ReasonReady {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	reached, applied, healthy := is(csv1.ConditionClusterReady, "Ready", ""), is(csv1.ConditionApplied, "Ready", ""), is(csv1.ConditionHealthy, "Ready", "")
	waits := []metav1.Condition{reached, is(csv1.ConditionApplied, "StageWaiting", "for x"), healthy}
	for name, c := range map[string]struct {
		have, before []metav1.Condition
		want         cond
		events       []string
	}{
		"all is well": {[]metav1.Condition{healthy, applied, reached}, nil, cond{"True", "Ready", ""}, []string{
			"Normal Ready the add-ons of s/docker-ferrol-1-27-v1 are there and healthy",
		}},
		"all is well, as it was": {[]metav1.Condition{healthy, applied, reached}, []metav1.Condition{is("Ready", "Ready", "")}, cond{"True", "Ready", ""}, nil},
		"nothing is known":       {nil, nil, cond{"Unknown", "NotYetKnown", "ClusterReady is not known yet"}, nil},
		"a stage waits":          {waits, nil, cond{"False", "StageWaiting", "for x"}, []string{"Normal StageWaiting for x", "Normal StageWaiting add-ons: for x"}},
		"a stage waits, still":   {waits, []metav1.Condition{is("Ready", "StageWaiting", "for x")}, cond{"False", "StageWaiting", "for x"}, nil},
		"a stage waits for something else": {
			waits, []metav1.Condition{is("Ready", "StageWaiting", "for y")}, cond{"False", "StageWaiting", "for x"},
			[]string{"Normal StageWaiting for x", "Normal StageWaiting add-ons: for x"},
		},
		"a stage has waited for too long": {
			[]metav1.Condition{reached, is(csv1.ConditionApplied, "StageTimedOut", "for x"), healthy}, []metav1.Condition{is("Ready", "StageWaiting", "for x")},
			cond{"False", "StageTimedOut", "for x"}, []string{"Warning StageTimedOut for x", "Warning StageTimedOut add-ons: for x"},
		},
		"a stage still waits for too long": {
			[]metav1.Condition{reached, is(csv1.ConditionApplied, "StageTimedOut", "for x"), healthy}, []metav1.Condition{is("Ready", "StageTimedOut", "for x")},
			cond{"False", "StageTimedOut", "for x"}, nil,
		},
		"something is not healthy": {
			[]metav1.Condition{reached, applied, is(csv1.ConditionHealthy, "NotHealthy", "x ails")}, []metav1.Condition{is("Ready", "Ready", "")},
			cond{"False", "NotHealthy", "x ails"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := alone(), newScope(at("v1", "v1", "v1", create))
			s.addon.Status.Conditions, s.tracked.Initial().Status.Conditions = c.have, c.before
			r.summarize(s)
			if d := cmp.Diff(c.want, conditionOf(s.addon, csv1.ConditionReady)); d != "" {
				t.Error(d)
			}
			if s.addon.Status.Ready == nil || *s.addon.Status.Ready != (c.want.Status == "True") {
				t.Errorf("ready: %v", s.addon.Status.Ready)
			}
			if d := cmp.Diff(c.events, told(r)); d != "" {
				t.Error(d)
			}
		})
	}
}
