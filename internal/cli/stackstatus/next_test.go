package stackstatus

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// TestStackStatusAdvice sees to it that nobody makes a reason and forgets what to do about it.
func TestStackStatusAdvice(t *testing.T) {
	silent := []string{
		csv1.ReasonReady, csv1.ReasonAvailable, csv1.ReasonNotActedOn, // all is well
		csv1.ReasonReleasesNotReady, csv1.ReasonReleaseNotReady, // the release says what to do
		csv1.ReasonDeleting, csv1.ReasonStagesRunning, csv1.ReasonSourceBusy, csv1.ReasonClassNotSeen, // it passes by itself
	}
	all := conditionReasons(t)
	if len(all) < 20 || !slices.Contains(all, csv1.ReasonInUse) {
		t.Fatalf("these are not all reasons: %s", all)
	}
	for _, reason := range all {
		if _, ok := adviceByReason[reason]; ok == slices.Contains(silent, reason) {
			t.Errorf("there must be either advice for %s, or a reason to be silent", reason)
		}
	}
	s := aStack("ns", "stack")
	for reason, a := range adviceByReason {
		if !slices.Contains(all, reason) || a.who == "" || a.action == "" {
			t.Errorf("advice for %s: %+v", reason, a)
		}
		for _, of := range []*csv1.ClusterStack{nil, &s} {
			do := adviceTarget{kind: "Cluster", namespace: "ns", name: "c", stack: of}.nextStepFor(reason, "K").Action
			if strings.ContainsAny(strings.ReplaceAll(do, "{.data.value}", ""), "{}") || strings.ContainsAny(do, "\n\t") {
				t.Errorf("advice for %s: %s", reason, do)
			}
		}
	}
}

// conditionReasons are those that the API has.
func conditionReasons(t *testing.T) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../../api/clusterstack/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Reason") {
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
		}
		return true
	})
	return all
}

func TestStackStatusStep(t *testing.T) {
	s := aStack("ns", "scs")
	s.Spec.Channel = ""
	cluster := adviceTarget{kind: "Cluster", namespace: "team", name: "c", object: "clusteraddon -n team cluster-addon-c", stage: "cni", stack: &s}
	orphan := cluster
	orphan.stack = nil
	release := adviceTarget{kind: "ClusterStackRelease", namespace: "ns", name: "r", object: "clusterstackrelease -n ns r", class: "r.x", stack: &s}
	tests := []struct {
		adviceTarget
		reason, want string
	}{
		{release, csv1.ReasonSourceMissing, "- ClusterStack ns/scs: name a source in spec.source, or start polderd with --stack-source (platform operator)"},
		{release, csv1.ReasonNotFound, "- ClusterStackRelease ns/r: publish it again, or take its version out of spec.versions of ClusterStack ns/scs (stack author)"},
		{release, csv1.ReasonApplyFailed, "- ClusterStackRelease ns/r: see the errors of its objects with: K get clusterstackrelease -n ns r -o yaml; it is tried again by itself (platform operator)"},
		{release, csv1.ReasonClassNotReady, "- ClusterStackRelease ns/r: see what Cluster API says of its class with: K describe clusterclass -n ns r.x (platform operator)"},
		{release, csv1.ReasonInUse, "- ClusterStackRelease ns/r: delete the clusters that use it, or move them to another release: its conditions name them (customer)"},
		{release, csv1.ReasonNoRelease, "- ClusterStackRelease ns/r: publish a release of local scs for Kubernetes 1.36 in channel stable with polder stack publish; polder stack list shows what the source has (stack author)"},
		{cluster, csv1.ReasonApplyFailed, "- Cluster team/c: see the errors of its objects with: K get clusteraddon -n team cluster-addon-c -o yaml; it is tried again by itself (platform operator)"},
		{release, csv1.ReasonInvalid, "- ClusterStackRelease ns/r: correct the stack, which polder stack lint checks, and publish a new version (stack author)"},
		{cluster, csv1.ReasonInvalid, "- Cluster team/c: correct the stack, publish a new version, and change the cluster's class to it (stack author, then customer)"},
		{cluster, csv1.ReasonNotAllowed, "- Cluster team/c: add spec.allowedNamespaces to ClusterStack ns/scs, so that it selects namespace team (platform operator)"},
		{orphan, csv1.ReasonNotAllowed, "- Cluster team/c: add spec.allowedNamespaces to the ClusterStack of its release, which there is not yet, so that it selects namespace team (platform operator)"},
		{cluster, csv1.ReasonConditionInvalid, "- Cluster team/c: correct the condition of stage cni, publish a new version, and change the cluster's class to it (stack author, then customer)"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff([]string{"", "Next:", tt.want}, nextStepLines([]nextStep{tt.nextStepFor(tt.reason, "K")})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
	if got := nextStepLines(nil); got != nil {
		t.Errorf("without problems it says %q", got)
	}
}

func TestStackStatusHealth(t *testing.T) {
	earlier := func(c metav1.Condition) metav1.Condition { c.ObservedGeneration = 1; return c }
	unknown := func(c metav1.Condition) metav1.Condition { c.Status = metav1.ConditionUnknown; return c }
	yes := func(c metav1.Condition) metav1.Condition { c.Status = metav1.ConditionTrue; return c }
	tests := map[string]struct {
		meta       metav1.ObjectMeta
		conditions []metav1.Condition
		want       health
		reasons    []string
	}{
		"no conditions":          {newObjectMeta("", ""), nil, health{State: readinessWaiting, Message: "no controller has looked at it yet"}, nil},
		"ready":                  {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "", "fine")}, health{State: readinessReady, Reason: "Ready", Message: "fine"}, nil},
		"ready before a change":  {newObjectMeta("", ""), []metav1.Condition{earlier(newCondition("Ready", "", "fine"))}, health{State: readinessWaiting, Message: "no controller has looked at it since it was changed"}, nil},
		"failed before a change": {newObjectMeta("", ""), []metav1.Condition{earlier(newCondition("Ready", csv1.ReasonInvalid, "")), newCondition("X", csv1.ReasonInvalid, "")}, health{State: readinessWaiting, Message: "no controller has looked at it since it was changed"}, nil},
		"failed":                 {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", csv1.ReasonInvalid, "bad")}, health{State: readinessFailed, Reason: csv1.ReasonInvalid, Message: "bad"}, []string{csv1.ReasonInvalid}},
		"failed without words":   {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", csv1.ReasonInvalid, "")}, health{State: readinessFailed, Reason: csv1.ReasonInvalid, Message: csv1.ReasonInvalid}, []string{csv1.ReasonInvalid}},
		"waiting, with advice":   {newObjectMeta("", ""), []metav1.Condition{unknown(newCondition("Ready", csv1.ReasonUnreachable, "no answer"))}, health{State: readinessWaiting, Reason: csv1.ReasonUnreachable, Message: "no answer"}, []string{csv1.ReasonUnreachable}},
		"waiting, unheard of":    {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "Unheard", "x"), newCondition("Y", "Unheard", "y")}, health{State: readinessWaiting, Reason: "Unheard", Message: "x"}, nil},
		"consequences do not count": {newObjectMeta("", ""), []metav1.Condition{newCondition("A", csv1.ReasonNotFound, "a"), newCondition("Ready", csv1.ReasonInvalid, "b"), newCondition("ClusterStackReleaseAvailable", csv1.ReasonNoRelease, "c")},
			health{State: readinessFailed, Reason: csv1.ReasonInvalid, Message: "b"}, []string{csv1.ReasonInvalid}},
		"but the source does": {newObjectMeta("", ""), []metav1.Condition{newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a"), newCondition("Ready", csv1.ReasonNoRelease, "b")},
			health{State: readinessFailed, Reason: csv1.ReasonNoRelease, Message: "b", Notes: []string{"a"}}, []string{csv1.ReasonNoRelease, csv1.ReasonSourceUnreachable}},
		"the source, once": {newObjectMeta("", ""), []metav1.Condition{newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a"), newCondition("Ready", csv1.ReasonSourceMissing, "a")},
			health{State: readinessFailed, Reason: csv1.ReasonSourceMissing, Message: "a"}, []string{csv1.ReasonSourceMissing}},
		"what is there is served": {newObjectMeta("", ""), []metav1.Condition{newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a"), yes(newCondition("Ready", csv1.ReasonSourceUnreachable, "b"))},
			health{State: readinessReady, Reason: csv1.ReasonSourceUnreachable, Message: "b", Notes: []string{"a"}}, []string{csv1.ReasonSourceUnreachable}},
		"true is true": {newObjectMeta("", ""), []metav1.Condition{yes(newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a")), newCondition("Ready", "", "")}, health{State: readinessReady, Reason: "Ready"}, nil},
		"the source before a change": {newObjectMeta("", ""), []metav1.Condition{earlier(newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a")), earlier(newCondition("ProviderRefIgnored", "", "b")), newCondition("Ready", "", "")},
			health{State: readinessReady, Reason: "Ready"}, nil},
		"providerRef":             {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "", ""), newCondition("ProviderRefIgnored", "", "not acted on")}, health{State: readinessReady, Reason: "Ready", Notes: []string{"not acted on"}}, nil},
		"no providerRef any more": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "", ""), newCondition("ProviderRefIgnored", csv1.ReasonInvalid, "")}, health{State: readinessReady, Reason: "Ready"}, nil},
		"deleted, not yet seen":   {withDeletion(newObjectMeta("", "")), []metav1.Condition{newCondition("Ready", "", "fine")}, health{State: readinessDeleting, Message: "it is being deleted"}, nil},
		"deleted and used":        {withDeletion(newObjectMeta("", "")), []metav1.Condition{newCondition("Ready", csv1.ReasonInUse, "by x"), newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a")}, health{State: readinessDeleting, Reason: csv1.ReasonInUse, Message: "by x"}, []string{csv1.ReasonInUse}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, reasons := evaluateConditions(&tt.meta, tt.conditions)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(health{})) + cmp.Diff(tt.reasons, reasons); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
