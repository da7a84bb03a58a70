package stackstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage/advice"
)

func TestStep(t *testing.T) {
	s := aStack("ns", "scs")
	addon := advice.Object{Kind: "ClusterAddon", Meta: &metav1.ObjectMeta{Namespace: "team", Name: "cluster-addon-c"}, Cluster: "c", Stage: "cni", Stack: &s}
	release := advice.Object{Kind: "ClusterStackRelease", Meta: &metav1.ObjectMeta{Namespace: "ns", Name: "r"}, Class: "r.x", Stack: &s}
	for _, tt := range []struct {
		advice.Object
		reason, want string
	}{
		{release, csv1.ReasonNotFound,
			"- ClusterStackRelease ns/r: publish it again, or take its version out of spec.versions of ClusterStack ns/scs (stack author)"},
		{release, csv1.ReasonApplyFailed,
			"- ClusterStackRelease ns/r: see the errors of its objects with: K get clusterstackrelease -n ns r -o yaml; it is tried again by itself (platform operator)"},
		{addon, csv1.ReasonApplyFailed,
			"- Cluster team/c: see the errors of its objects with: K get clusteraddon -n team cluster-addon-c -o yaml; it is tried again by itself (platform operator)"},
		{addon, csv1.ReasonNotAllowed, "- Cluster team/c: add spec.allowedNamespaces to ClusterStack ns/scs, so that it selects namespace team (platform operator)"},
		{addon, csv1.ReasonNotHealthy,
			"- Cluster team/c: see in the cluster what is wrong with: K get secret -n team c-kubeconfig -o 'jsonpath={.data.value}' | base64 -d >c.kubeconfig; kubectl --kubeconfig c.kubeconfig get pods,events -A (customer)"},
	} {
		actor, action := advice.ForReason(tt.Object, tt.reason)
		if diff := cmp.Diff([]string{"", "Next:", tt.want}, nextStepLines([]nextStep{newNextStep(tt.Object, tt.reason, actor, action, "K")})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
	if got := nextStepLines(nil); got != nil {
		t.Errorf("without problems it says %q", got)
	}
}

// What the status says is printed, whatever this program would say; without it, as of an older plane, that is.
func TestStepOfStatus(t *testing.T) {
	v := &reportBuilder{kubectl: "polder kubectl"}
	o := newObjectMeta("ns", "scs")
	about := advice.Object{Kind: "ClusterStack", Meta: &o, Conditions: []metav1.Condition{newCondition("Ready", csv1.ReasonNotOurs, "")}}
	for _, c := range []struct {
		actor      csv1.Actor
		next, want string
	}{
		{csv1.Customer, "do as kubectl says", "do as polder kubectl says"},
		{csv1.Nobody, "", ""},
		{"", "", "delete one of the two ClusterStacks, or have them in two namespaces"},
	} {
		got := ""
		for _, n := range v.evaluateHealth(about, c.actor, c.next).steps {
			got += n.Action
		}
		if got != c.want {
			t.Errorf("%s %q: %q, want %q", c.actor, c.next, got, c.want)
		}
	}
}

// What is wrong with a source is said once, with the stack; but it is said, if the stack knows nothing of it.
func TestStepOfSource(t *testing.T) {
	v := &reportBuilder{kubectl: "K"}
	failed := newCondition("Ready", csv1.ReasonSourceUnreachable, "")
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       int
	}{
		"the stack says it too":      {[]metav1.Condition{newCondition(csv1.ConditionSourceAvailable, csv1.ReasonSourceUnreachable, "")}, 0},
		"the stack can list it":      {[]metav1.Condition{newCondition("Ready", csv1.ReasonReleasesNotReady, "")}, 1},
		"nobody looked at the stack": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := aStack("ns", "scs"), newObjectMeta("ns", "r")
			s.Status.Conditions = c.conditions
			about := advice.Object{Kind: "ClusterStackRelease", Meta: &o, Stack: &s, Conditions: []metav1.Condition{failed}}
			if got := v.evaluateHealth(about, "", "").steps; len(got) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	earlier := func(c metav1.Condition) metav1.Condition { c.ObservedGeneration = 1; return c }
	unknown := func(c metav1.Condition) metav1.Condition { c.Status = metav1.ConditionUnknown; return c }
	yes := func(c metav1.Condition) metav1.Condition { c.Status = metav1.ConditionTrue; return c }
	tests := map[string]struct {
		meta       metav1.ObjectMeta
		conditions []metav1.Condition
		want       health
	}{
		"no conditions": {newObjectMeta("", ""), nil, health{State: readinessWaiting, Message: "no controller has looked at it yet"}},
		"ready": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "", "fine")}, health{
			State: readinessReady, Reason: "Ready", Message: "fine",
		}},
		"ready before a change": {newObjectMeta("", ""), []metav1.Condition{earlier(newCondition("Ready", "", "fine"))}, health{
			State: readinessWaiting, Message: "no controller has looked at it since it was changed",
		}},
		"failed before a change": {newObjectMeta("", ""),
			[]metav1.Condition{earlier(newCondition("Ready", csv1.ReasonInvalid, "")), newCondition("X", csv1.ReasonInvalid, "")}, health{
				State: readinessWaiting, Message: "no controller has looked at it since it was changed",
			}},
		"failed": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", csv1.ReasonInvalid, "bad")}, health{
			State: readinessFailed, Reason: csv1.ReasonInvalid, Message: "bad",
		}},
		"failed without words": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", csv1.ReasonInvalid, "")}, health{
			State: readinessFailed, Reason: csv1.ReasonInvalid, Message: csv1.ReasonInvalid,
		}},
		"waiting, with advice": {newObjectMeta("", ""), []metav1.Condition{unknown(newCondition("Ready", csv1.ReasonUnreachable, "no answer"))}, health{
			State: readinessWaiting, Reason: csv1.ReasonUnreachable, Message: "no answer",
		}},
		"waiting, unheard of": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "Unheard", "x"), newCondition("Y", "Unheard", "y")}, health{
			State: readinessWaiting, Reason: "Unheard", Message: "x",
		}},
		"consequences do not count": {newObjectMeta("", ""), []metav1.Condition{
			newCondition("A", csv1.ReasonNotFound, "a"), newCondition("Ready", csv1.ReasonInvalid, "b"),
			newCondition("ClusterStackReleaseAvailable", csv1.ReasonNoRelease, "c"),
		},
			health{State: readinessFailed, Reason: csv1.ReasonInvalid, Message: "b"}},
		"but the source does": {newObjectMeta("", ""), []metav1.Condition{
			newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a"), newCondition("Ready", csv1.ReasonNoRelease, "b"),
		},
			health{State: readinessFailed, Reason: csv1.ReasonNoRelease, Message: "b", Notes: []string{"a"}}},
		"the source, once": {newObjectMeta("", ""), []metav1.Condition{
			newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a"), newCondition("Ready", csv1.ReasonSourceMissing, "a"),
		},
			health{State: readinessFailed, Reason: csv1.ReasonSourceMissing, Message: "a"}},
		"what is there is served": {newObjectMeta("", ""), []metav1.Condition{
			newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a"), yes(newCondition("Ready", csv1.ReasonSourceUnreachable, "b")),
		},
			health{State: readinessReady, Reason: csv1.ReasonSourceUnreachable, Message: "b", Notes: []string{"a"}}},
		"true is true": {newObjectMeta("", ""),
			[]metav1.Condition{yes(newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "a")), newCondition("Ready", "", "")}, health{
				State: readinessReady, Reason: "Ready",
			}},
		"the source before a change": {newObjectMeta("", ""), []metav1.Condition{
			earlier(newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a")), earlier(newCondition("ProviderRefIgnored", "", "b")),
			newCondition("Ready", "", ""),
		},
			health{State: readinessReady, Reason: "Ready"}},
		"providerRef": {newObjectMeta("", ""), []metav1.Condition{newCondition("Ready", "", ""), newCondition("ProviderRefIgnored", "", "not acted on")},
			health{State: readinessReady, Reason: "Ready", Notes: []string{"not acted on"}}},
		"no providerRef any more": {newObjectMeta("", ""),
			[]metav1.Condition{newCondition("Ready", "", ""), newCondition("ProviderRefIgnored", csv1.ReasonInvalid, "")}, health{
				State: readinessReady, Reason: "Ready",
			}},
		"deleted, not yet seen": {withDeletion(newObjectMeta("", "")), []metav1.Condition{newCondition("Ready", "", "fine")}, health{
			State: readinessDeleting, Message: "it is being deleted",
		}},
		"deleted and used": {withDeletion(newObjectMeta("", "")),
			[]metav1.Condition{newCondition("Ready", csv1.ReasonInUse, "by x"), newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceMissing, "a")}, health{
				State: readinessDeleting, Reason: csv1.ReasonInUse, Message: "by x",
			}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := evaluateConditions(&tt.meta, tt.conditions)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(health{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
