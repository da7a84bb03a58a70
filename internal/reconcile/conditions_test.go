package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewConditionsDropsInvalid(t *testing.T) {
	have := []metav1.Condition{{Type: "A", Reason: "R"}, {Type: "B"}, {Type: "C", Reason: "R"}}
	NewConditions(&corev1.Node{}, &have, "Ready")
	if d := cmp.Diff([]metav1.Condition{{Type: "A", Reason: "R"}, {Type: "C", Reason: "R"}}, have); d != "" {
		t.Error(d)
	}
	have = nil
	if NewConditions(&corev1.Node{}, &have, "Ready"); have != nil {
		t.Errorf("%v", have)
	}
}

func TestConditions(t *testing.T) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	long := strings.Repeat("a ", 2*maxMessageBytes)
	for name, c := range map[string]struct {
		do   func(Conditions)
		want []metav1.Condition
	}{
		"true":  {func(c Conditions) { c.SetTrue("A", "m") }, []metav1.Condition{{Type: "A", Status: "True", Reason: "Fine", Message: "m"}}},
		"false": {func(c Conditions) { c.SetFalse("A", "R", "m") }, []metav1.Condition{{Type: "A", Status: "False", Reason: "R", Message: "m"}}},
		"one that is changed": {
			func(c Conditions) { c.SetFalse("A", "R", "m"); c.SetTrue("B", ""); c.SetTrue("A", "n") },
			[]metav1.Condition{{Type: "A", Status: "True", Reason: "Fine", Message: "n"}, {Type: "B", Status: "True", Reason: "Fine"}},
		},
		"a long message": {
			func(c Conditions) { c.SetTrue("A", long) },
			[]metav1.Condition{{Type: "A", Status: "True", Reason: "Fine", Message: TruncateMessage(long)}},
		},
		"a message as it is": {
			func(c Conditions) {
				c.Set(metav1.Condition{Type: "A", Status: "Unknown", Reason: "R", Message: long, ObservedGeneration: 3})
			},
			[]metav1.Condition{{Type: "A", Status: "Unknown", Reason: "R", Message: long}},
		},
		"one that is removed": {
			func(c Conditions) { c.SetTrue("A", ""); c.SetTrue("B", ""); c.Remove("A") },
			[]metav1.Condition{{Type: "B", Status: "True", Reason: "Fine"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			conditions := NewConditions(o, &list, "Fine")
			c.do(conditions)
			for i := range c.want {
				c.want[i].ObservedGeneration = 7
			}
			if d := cmp.Diff(c.want, list, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); d != "" {
				t.Error(d)
			}
			for _, w := range c.want {
				if got := conditions.Get(w.Type); got == nil || got.Reason != w.Reason {
					t.Errorf("%s: %v", w.Type, got)
				}
			}
			if got := conditions.Get("Other"); got != nil {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestConditionsSummarize(t *testing.T) {
	var list []metav1.Condition
	c := NewConditions(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Generation: 7}}, &list, "Fine")
	c.SetTrue("A", "")
	c.SetFalse("B", "R", "m")
	want := metav1.Condition{Type: "Ready", Status: "False", Reason: "R", Message: "m", ObservedGeneration: 7}
	if d := cmp.Diff(want, c.Summarize("Ready", "A", "B")); d != "" {
		t.Error(d)
	}
	if len(list) != 2 {
		t.Error("it was set")
	}
}

func TestSummary(t *testing.T) {
	is := func(name string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: name + "Reason", Message: name + " message", ObservedGeneration: 1}
	}
	for name, c := range map[string]struct {
		have []metav1.Condition
		want metav1.Condition
	}{
		"all are true":       {[]metav1.Condition{is("B", "True"), is("A", "True")}, metav1.Condition{Status: "True", Reason: "Ready"}},
		"others do not care": {[]metav1.Condition{is("A", "True"), is("B", "True"), is("C", "False")}, metav1.Condition{Status: "True", Reason: "Ready"}},
		"one is false":       {[]metav1.Condition{is("A", "True"), is("B", "False")}, metav1.Condition{Status: "False", Reason: "BReason", Message: "B message"}},
		"the first that is asked for counts": {
			[]metav1.Condition{is("B", "False"), is("A", "Unknown")}, metav1.Condition{Status: "Unknown", Reason: "AReason", Message: "A message"},
		},
		"one is missing": {[]metav1.Condition{is("A", "True")}, metav1.Condition{Status: "Unknown", Reason: "NotYetKnown", Message: "B is not known yet"}},
		"none is known":  {nil, metav1.Condition{Status: "Unknown", Reason: "NotYetKnown", Message: "A is not known yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Type, c.want.ObservedGeneration = "Ready", 7
			if d := cmp.Diff(c.want, Summary(c.have, "Ready", 7, "A", "B")); d != "" {
				t.Error(d)
			}
		})
	}
}
