package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func widgets(scope string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
		spec: {group: example.com, scope: ` + scope + `, names: {kind: Widget, plural: widgets},
		versions: [{name: v1, served: true}, {name: v0, served: false}]}}`
}

func TestPrepareOrders(t *testing.T) {
	set := prepare(t, applier(),
		named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a"),
		named("example.com/v1", "Widget", "a"),
		named("apps/v1", "Deployment", "b"),
		named("apps/v1", "Deployment", "a"),
		named("v1", "Secret", "a"),
		named("v1", "Service", "a"),
		named("rbac.authorization.k8s.io/v1", "RoleBinding", "a"),
		named("rbac.authorization.k8s.io/v1", "ClusterRole", "a"),
		named("v1", "ServiceAccount", "a"),
		widgets("Namespaced"),
		named("v1", "Namespace", "a"),
	)
	want := []string{
		"Namespace a", "CustomResourceDefinition widgets.example.com",
		"ServiceAccount home/a", "ClusterRole a",
		"Secret home/a", "Service home/a", "RoleBinding home/a",
		"Deployment home/a", "Deployment home/b",
		"Widget home/a",
		"ValidatingWebhookConfiguration a",
	}
	if diff := cmp.Diff(want, names(set.Refs())); diff != "" {
		t.Error(diff)
	}
	if n := len(set.rankGroups()); n != 6 {
		t.Errorf("there are %d groups", n)
	}
}

func TestRankOfClass(t *testing.T) {
	template := rankOf(Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "FooTemplate"})
	if class := rankOf(Ref{Group: "cluster.x-k8s.io", Kind: "ClusterClass"}); class <= template {
		t.Error("a class must come after its templates, and go before them")
	}
}

func TestPrepareFindsNamespaces(t *testing.T) {
	set := prepare(t, applier(),
		named("v1", "ConfigMap", "default"),
		within("away", "v1", "ConfigMap", "stays"),
		within("away", "rbac.authorization.k8s.io/v1", "ClusterRole", "has-none"),
		widgets("Cluster"),
		within("away", "example.com/v1", "Widget", "has-none"),
	)
	want := []string{"CustomResourceDefinition widgets.example.com", "ClusterRole has-none", "ConfigMap away/stays", "ConfigMap home/default", "Widget has-none"}
	if diff := cmp.Diff(want, names(set.Refs())); diff != "" {
		t.Error(diff)
	}
}

func TestPrepareTakesTheWordOfTheClusterForScopes(t *testing.T) {
	lie := strings.NewReplacer("example.com", "rbac.authorization.k8s.io", "Widget", "ClusterRole").Replace(widgets("Namespaced"))
	set := prepare(t, applier(), lie, named("rbac.authorization.k8s.io/v1", "ClusterRole", "x"))
	if diff := cmp.Diff([]string{"CustomResourceDefinition widgets.rbac.authorization.k8s.io", "ClusterRole x"}, names(set.Refs())); diff != "" {
		t.Error(diff)
	}
}

func TestPrepareCompletes(t *testing.T) {
	a := applier()
	a.Labels = map[string]string{"team": "ours"}
	a.OwnerRefs = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u"}}
	in := parse(t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: spoofed, resourceVersion: '7', creationTimestamp: null, labels: {team: theirs, app: x, "+
			csv1.OwnedLabel+": nobody}}}",
		within("away", "v1", "ConfigMap", "y"), named("v1", "Namespace", "z"))
	in[0].Object["number"] = 7 // DeepCopy would panic
	before, _ := json.Marshal(in)
	set, err := a.Prepare(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Errorf("the input was changed: %s", after)
	}
	x := set.Object(Ref{Kind: "ConfigMap", Namespace: "home", Name: "x"})
	if diff := cmp.Diff(map[string]string{"team": "ours", "app": "x", csv1.OwnedLabel: csv1.OwnedValue}, x.GetLabels()); diff != "" {
		t.Error(diff)
	}
	if x.GetUID() != "" || x.GetResourceVersion() != "" || x.Object["number"] != int64(7) {
		t.Errorf("it is %v", x)
	}
	if diff := cmp.Diff(a.OwnerRefs, x.GetOwnerReferences()); diff != "" {
		t.Error(diff)
	}
	for _, r := range []Ref{{Kind: "ConfigMap", Namespace: "away", Name: "y"}, {Kind: "Namespace", Name: "z"}} {
		if u := set.Object(r); u == nil || len(u.GetOwnerReferences()) > 0 || u.GetLabels()[csv1.OwnedLabel] == "" {
			t.Errorf("%s: %v", r, u)
		}
	}
	if set.Object(Ref{Kind: "ConfigMap", Name: "x"}) != nil {
		t.Error("the set has an object that it does not have")
	}
}

func TestPrepareRefusesAllAtOnce(t *testing.T) {
	a := applier(OnlyNamespace("home"), NoOwnerReferences())
	set, err := a.Prepare(t.Context(), append(parse(t,
		named("v1", "ConfigMap", "fine"),
		named("v1", "Namespace", "x"),
		within("away", "v1", "ConfigMap", "x"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: f, finalizers: [a]}}",
		named("v1", "ConfigMap", "twice"),
		within("home", "v1", "ConfigMap", "twice"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-}}",
		"{kind: ConfigMap, metadata: {name: x}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: z, labels: {a: 1}}}",
		named("example.com/v1", "Gadget", "x"),
	), nil))
	if set != nil {
		t.Error("there is a set")
	}
	var refused *RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, ErrRefused) {
		t.Fatalf("the error is %v", err)
	}
	var got []string
	for _, r := range refused.Reasons {
		got = append(got, r.Error())
	}
	for _, want := range []string{
		"Namespace x is not allowed", "ConfigMap away/x is not allowed", "ConfigMap home/f is not allowed: it has metadata.finalizers",
		"objects 5 and 6 are both ConfigMap home/twice", "object 7 is none: ConfigMap has no name", "object 8 is none: ConfigMap x has no apiVersion",
		"ConfigMap home/z has labels that are not all strings", `Gadget x cannot be applied: no matches for kind "Gadget"`, "object 11 is none: it is empty",
	} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("nothing says %q", want)
		}
	}
	if len(got) != 9 {
		t.Errorf("there are %d reasons:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestPrepareKnowsKindsByVersion(t *testing.T) {
	for name, objects := range map[string][]string{
		"no definition":          {named("example.com/v1", "Widget", "x"), named("example.com/v1", "Widget", "y")},
		"a version not served":   {widgets("Namespaced"), named("example.com/v0", "Widget", "x")},
		"a version not defined":  {widgets("Namespaced"), named("example.com/v2", "Widget", "x")},
		"another group":          {widgets("Namespaced"), named("example.org/v1", "Widget", "x")},
		"a version of our kinds": {named("apps/v1beta1", "Deployment", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := applier().Prepare(t.Context(), parse(t, objects...))
			if !meta.IsNoMatchError(err) || errors.Is(err, ErrRefused) {
				t.Fatalf("the error is %v", err)
			}
			if strings.Contains(err.Error(), ";") && strings.Count(err.Error(), "cannot be applied") != 1 {
				t.Errorf("a kind is missed more than once: %v", err)
			}
		})
	}
}

func TestPrepareEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := applier().Prepare(ctx, parse(t, named("v1", "ConfigMap", "x"))); err == nil {
		t.Error("there is no error")
	}
}

func TestPrepareNeedsANamespace(t *testing.T) {
	a := applier()
	a.Namespace = ""
	_, err := a.Prepare(t.Context(), parse(t, named("v1", "ConfigMap", "x"), named("v1", "Namespace", "x")))
	if !errors.Is(err, ErrRefused) || err.Error() != "ConfigMap x needs a namespace; name one in the chart" {
		t.Errorf("the error is %v", err)
	}
}

func TestDigest(t *testing.T) {
	x, y := named("v1", "ConfigMap", "x"), named("v1", "ConfigMap", "y")
	d := prepare(t, applier(), x, y).Digest()
	if !strings.HasPrefix(d, "sha256:") || len(d) != 71 {
		t.Errorf("the digest is %s", d)
	}
	if other := prepare(t, applier(), y, x).Digest(); other != d {
		t.Error("the digest depends on the order of the input")
	}
	labelled := applier()
	labelled.Labels = map[string]string{"a": "b"}
	for name, other := range map[string]*Set{
		"an object less": prepare(t, applier(), x),
		"another object": prepare(t, applier(), x, named("v1", "ConfigMap", "z")),
		"other content":  prepare(t, applier(), x, "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'y'}, data: {a: b}}"),
		"other labels":   prepare(t, labelled, x, y),
		"another place":  prepare(t, applier(), x, within("away", "v1", "ConfigMap", "y")),
	} {
		if other.Digest() == d {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func TestSecrets(t *testing.T) {
	set := prepare(t, applier(), "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: b2xk, b: b2xk}, stringData: {a: new, c: ''}}")
	u := set.Object(set.Refs()[0])
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	if diff := cmp.Diff(map[string]string{"a": "bmV3", "b": "b2xk", "c": ""}, data); diff != "" || u.Object["stringData"] != nil {
		t.Errorf("%s%v", diff, u)
	}
	for object, want := range map[string]string{
		"{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {b: 4711, a: 4711}}": "Secret home/x has stringData.a, stringData.b, which must be text",
		"{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: 'not 4711'}}":          "Secret home/x has data.a that is not base64",
		"{apiVersion: v1, kind: Secret, metadata: {name: x}, data: '4711'}":                   "Secret home/x has data that is no object",
	} {
		_, err := applier().Prepare(t.Context(), parse(t, object))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "4711") {
			t.Errorf("the error is %v, it should say %s", err, want)
		}
	}
}

func TestRefs(t *testing.T) {
	got, err := applier(OnlyNamespace("nowhere")).Refs(parse(t, widgets("Cluster"), named("example.com/v1", "Widget", "x"),
		named("v1", "ConfigMap", "x"), within("away", "v1", "Node", "x"), named("example.com/v1", "Gadget", "x")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CustomResourceDefinition widgets.example.com", "Widget x", "ConfigMap home/x", "Node x", "Gadget home/x"}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := applier().Refs(parse(t, "{kind: Secret}")); !errors.Is(err, ErrRefused) {
		t.Errorf("the error is %v", err)
	}
}
