package advice

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func newStack() *csv1.ClusterStack {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "scs"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.37"}
	return s
}

// Nobody makes a reason and forgets what to do about it.
func TestEveryReasonHasAdvice(t *testing.T) {
	silent := []string{
		csv1.ReasonReady, csv1.ReasonAvailable, csv1.ReasonNotActedOn, csv1.ReasonOldVersion, // all is well
		csv1.ReasonReleasesNotReady, csv1.ReasonReleaseNotReady, // the release says what to do
		csv1.ReasonDeleting, csv1.ReasonStagesRunning, csv1.ReasonSourceBusy, csv1.ReasonClassNotSeen, // it passes by itself
	}
	all := conditionReasons(t)
	if len(all) < 20 || !slices.Contains(all, csv1.ReasonInUse) {
		t.Fatalf("these are not all reasons: %s", all)
	}
	for _, reason := range all {
		if Has(reason) == slices.Contains(silent, reason) {
			t.Errorf("there must be either advice for %s, or a reason to be silent", reason)
		}
	}
	for reason, e := range byReason {
		if !slices.Contains(all, reason) || e.actor == "" || e.actor == csv1.Nobody || e.action == "" || IsFailure(reason) != e.failed {
			t.Errorf("advice for %s: %+v", reason, e)
		}
		for _, kind := range []string{"ClusterStack", "ClusterStackRelease", "ClusterAddon"} {
			for _, s := range []*csv1.ClusterStack{nil, newStack()} {
				_, do := ForReason(Object{Kind: kind, Meta: &metav1.ObjectMeta{Namespace: "ns", Name: "n"}, Stack: s}, reason)
				if strings.ContainsAny(strings.ReplaceAll(do, "{.data.value}", ""), "{}") || strings.ContainsAny(do, "\n\t") {
					t.Errorf("advice for %s of %s: %s", reason, kind, do)
				}
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

func TestFor(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 2}
	}
	waiting := csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
	waiting.Status.Actor, waiting.Status.NextStep = csv1.StackAuthor, "publish it again"
	leaving := *waiting.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	const source = "name a source in spec.source, or start polderd with --stack-source"
	for name, c := range map[string]struct {
		o     Object
		goes  bool
		conds []metav1.Condition
		actor csv1.Actor
		next  string
	}{
		"nothing is known yet": {actor: csv1.Nobody},
		"ready":                {conds: []metav1.Condition{is("Ready", "True", csv1.ReasonReady)}, actor: csv1.Nobody},
		"of an older spec": {
			conds: []metav1.Condition{{Type: "Ready", Status: "False", Reason: csv1.ReasonSourceMissing, ObservedGeneration: 1}}, actor: csv1.Nobody,
		},
		"no source": {conds: []metav1.Condition{is("Ready", "False", csv1.ReasonSourceMissing)}, actor: csv1.PlatformOperator, next: source},
		"no source, and it is a release's": {
			o: Object{Kind: "ClusterStackRelease", Stack: newStack()}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonSourceMissing)},
			actor: csv1.PlatformOperator, next: source + " (ClusterStack ns/scs)",
		},
		"what is there is served without its source": {
			conds: []metav1.Condition{is("Ready", "True", csv1.ReasonSourceMissing), is(csv1.ConditionSourceAvailable, "False", csv1.ReasonSourceMissing)},
			actor: csv1.PlatformOperator, next: source,
		},
		"it passes by itself": {conds: []metav1.Condition{is("Ready", "False", csv1.ReasonStagesRunning)}, actor: csv1.Nobody},
		"it is deleted": {
			goes: true, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonSourceMissing)}, actor: csv1.Nobody,
		},
		"it is deleted and used": {
			o: Object{Clusters: []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}}, goes: true, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonInUse)},
			actor: csv1.Customer, next: "delete the clusters that use it, or move them to another release: a/1, a/2, a/3, a/4, a/5, and 1 more",
		},
		"its release waits for somebody": {
			o: Object{Releases: []csv1.ClusterStackRelease{{}, leaving, waiting}}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonReleasesNotReady)},
			actor: csv1.StackAuthor, next: "release ns/r: publish it again",
		},
		"its release waits for nobody": {
			o: Object{Releases: []csv1.ClusterStackRelease{{}}}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonReleasesNotReady)}, actor: csv1.Nobody,
		},
		"add-ons have advice of their own": {
			o: Object{Kind: "ClusterAddon"}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonInvalid)},
			actor: csv1.StackAuthor, next: "correct the stack, publish a new version, and change the cluster's class to it",
		},
		"the cluster of add-ons, not they": {
			o: Object{Kind: "ClusterAddon", Cluster: "demo"}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonNotInitialized)},
			actor: csv1.Customer, next: "see how far its control plane is with: kubectl describe cluster -n ns demo",
		},
		"a stage that is called like a command": {
			o: Object{Kind: "ClusterAddon", Stage: "x with: sh\n"}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonConditionInvalid)},
			actor: csv1.StackAuthor, next: `correct the condition of stage "x with: sh\n", publish a new version, and change the cluster's class to it`,
		},
		"as long as a status can be": {
			o: Object{Clusters: []string{strings.Repeat("ö", 1000)}}, conds: []metav1.Condition{is("Ready", "False", csv1.ReasonInUse)}, actor: csv1.Customer,
			next: ("delete the clusters that use it, or move them to another release: " + strings.Repeat("ö", 1000))[:1020] + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Meta = &metav1.ObjectMeta{Namespace: "ns", Name: "n", Generation: 2}
			if c.goes {
				c.o.Meta.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			if c.o.Kind == "" {
				c.o.Kind = "ClusterStack"
			}
			c.o.Conditions = c.conds
			if actor, next := For(c.o); actor != c.actor || next != c.next {
				t.Errorf("%s: %q\nwant %s: %q", actor, next, c.actor, c.next)
			}
		})
	}
}
