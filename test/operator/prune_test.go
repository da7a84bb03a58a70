package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/test/testenv"
)

func (g *ground) ref(name string) apply.Ref {
	return apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: g.Namespace, Name: name}
}

func TestPruneDeletesOnlyWhatIsOurs(t *testing.T) {
	g := newGround(t)
	kept := configMap("kept", map[string]string{"a": "b"})
	kept.Annotations = map[string]string{"helm.sh/resource-policy": "keep"}
	g.create(ours(kept))
	g.create(ours(configMap("ours", map[string]string{"a": "b"})))
	g.create(ours(configMap("stripped", map[string]string{"a": "b"})))
	g.patch(configMap("stripped", nil), `{"metadata":{"labels":{"`+csv1.OwnedLabel+`":null}}}`)
	g.create(configMap("replaced", map[string]string{"a": "theirs"}))

	results := g.Prune(t.Context(), []apply.Ref{
		g.ref("ours"), g.ref("stripped"), g.ref("replaced"), g.ref("kept"), g.ref("never-there"),
		{Group: "nobody.example.com", Version: "v1", Kind: "Gone", Namespace: g.Namespace, Name: "x"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "no-such-namespace", Name: "x"},
	})
	if err := apply.JoinErrors(results); err != nil || len(results) != 7 {
		t.Errorf("%d results, %v", len(results), err)
	}
	for name, want := range map[string]bool{"ours": false, "stripped": true, "replaced": true, "kept": true} {
		if (g.data(name) != nil) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
}

func TestPruneNeverDeletesANamespaceOfKubernetes(t *testing.T) {
	g := newGround(t)
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !g.exists(ns) {
			continue
		}
		label := func(value string) {
			if err := g.Client.Patch(t.Context(), ns,
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+csv1.OwnedLabel+`":`+value+`}}}`))); err != nil {
				t.Fatal(err)
			}
		}
		label(`"owned"`)
		results := g.Prune(t.Context(), []apply.Ref{{Version: "v1", Kind: "Namespace", Name: name}})
		if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil || results[0].Err != nil {
			t.Errorf("%s is deleted: %v, %v", name, err, results[0].Err)
		}
		label("null") // others use the plane, too
	}
	if g.requests.Delete.Load() > 0 {
		t.Error("there were requests to delete")
	}
}

// An object that takes the place of ours between our read and our delete stays.
func TestPruneDeletesByUID(t *testing.T) {
	g := newGround(t)
	g.create(ours(configMap("x", nil)))
	quiet := g.Client
	g.Client = meddling{Client: quiet, beforeDelete: func(string) {
		if err := quiet.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "x"}}); err != nil {
			t.Error(err)
		}
		g.create(configMap("x", map[string]string{"a": "theirs"}))
	}}
	results := g.Prune(t.Context(), []apply.Ref{g.ref("x")})
	if results[0].Err == nil || !apply.IsPending(results) || g.data("x")["a"] != "theirs" {
		t.Errorf("it has %v: %v", g.data("x"), results[0].Err)
	}
	g.Client = quiet
	if results = g.Prune(t.Context(), []apply.Ref{g.ref("x")}); results[0].Err != nil || g.data("x")["a"] != "theirs" {
		t.Errorf("it has %v: %v", g.data("x"), results[0].Err)
	}
}

// Somebody may be waiting for the name: that object is not ours to wait for.
func TestPruneDoesNotWaitForAnotherObject(t *testing.T) {
	g := newGround(t)
	g.create(ours(configMap("x", nil)))
	g.Client = meddling{Client: g.Client, afterDelete: func(string) { g.create(configMap("x", map[string]string{"a": "theirs"})) }}
	if results := g.Prune(t.Context(), []apply.Ref{g.ref("x")}); results[0].Err != nil || g.data("x")["a"] != "theirs" {
		t.Errorf("it has %v: %v", g.data("x"), results[0].Err)
	}
}

// A namespace has no finalizer that one could see, and goes only when it is empty.
func TestPruneWaitsForNamespaces(t *testing.T) {
	g := newGround(t)
	set := g.prepare(`{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NAMESPACE-gone}}`)
	if err := apply.JoinErrors(g.Apply(t.Context(), set, nil)); err != nil {
		t.Fatal(err)
	}
	held := configMap("held", nil)
	held.Namespace, held.Finalizers = g.Namespace+"-gone", []string{"example.com/wait"}
	g.create(held)
	results := g.Prune(t.Context(), set.Refs())
	want := map[string]string{
		"ConfigMap " + g.Namespace + "-gone/x": "",
		"Namespace " + g.Namespace + "-gone":   "Namespace " + g.Namespace + "-gone is being deleted",
	}
	if diff := cmp.Diff(want, g.told(results)); diff != "" {
		t.Error(diff)
	}
	g.patch(held, `{"metadata":{"finalizers":null}}`)
	testenv.Eventually(t, soon, func() error { return apply.JoinErrors(g.Prune(t.Context(), set.Refs())) })
}

func TestPruneGoesBackwardsAndWaits(t *testing.T) {
	g := newGround(t)
	held := strings.ReplaceAll(widget, "{name: x}", "{name: x, finalizers: [example.com/wait]}")
	set := g.prepare(widgets + "\n---\n" + held + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NAMESPACE}}`)
	results := g.Apply(t.Context(), set, nil)
	if err := apply.JoinErrors(results); err != nil {
		t.Fatal(err)
	}
	inventory, _ := apply.PlanInventory(nil, set)
	inventory = apply.RecordResults(inventory, results, nil)
	want := map[string]string{
		"ValidatingWebhookConfiguration " + g.Namespace: "",
		"Widget x":         "Widget " + g.Namespace + "/x is being deleted; it waits for those who put on its finalizers example.com/wait",
		"ConfigMap x":      "ConfigMap " + g.Namespace + "/x stays until Widget " + g.Namespace + "/x is gone",
		"ServiceAccount x": "ServiceAccount " + g.Namespace + "/x stays until Widget " + g.Namespace + "/x is gone",
		"CustomResourceDefinition widgets." + g.group(): "CustomResourceDefinition widgets." + g.group() + " stays until Widget " + g.Namespace + "/x is gone",
	}
	for range 2 { // it makes no difference that it is being deleted already
		results = g.Prune(t.Context(), set.Refs())
		if diff := cmp.Diff(want, g.told(results)); diff != "" || !apply.IsPending(results) {
			t.Error(diff)
		}
	}
	if n := g.requests.Delete.Load(); n != 2 {
		t.Errorf("there were %d requests to delete two objects", n)
	}
	if g.data("x") == nil {
		t.Error("the config map is gone too early")
	}
	if inventory = apply.RecordResults(inventory, nil, results); len(inventory) != 4 || apply.TrustSynced(inventory)(g.ref("x")) {
		t.Errorf("the inventory is %v", inventory)
	}
	for _, r := range results {
		if r.Ref.Kind == "Widget" {
			u := set.Object(r.Ref).DeepCopy()
			g.patch(u, `{"metadata":{"finalizers":null}}`)
		}
	}
	testenv.Eventually(t, soon, func() error { // the definition has a finalizer of the API server's own
		results = g.Prune(t.Context(), set.Refs())
		return apply.JoinErrors(results)
	})
	if g.data("x") != nil || len(apply.RecordResults(inventory, nil, results)) != 0 {
		t.Error("something is left")
	}
}

// The version that an inventory has may not be served any more, and the operator that came before did not record
// namespaces.
func TestPruneFindsWhatOldInventoriesMean(t *testing.T) {
	g := newGround(t)
	g.mustApply(widgets + "\n---\n" + widget + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}`)
	refs := []apply.Ref{
		{Group: g.group(), Version: "v1alpha1", Kind: "Widget", Namespace: g.Namespace, Name: "x"},
		{Version: "v1", Kind: "ConfigMap", Name: "x"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Namespace: "kube-system", Name: g.Namespace},
	}
	results := g.Prune(t.Context(), refs)
	if err := apply.JoinErrors(results); err != nil {
		t.Fatal(err)
	}
	if got := g.requests.Delete.Load(); got != 3 || g.data("x") != nil {
		t.Errorf("%d objects were deleted", got)
	}
	for _, r := range results {
		if r.Ref != refs[0] && r.Ref != refs[1] && r.Ref != refs[2] {
			t.Errorf("%v is not what was asked for", r.Ref)
		}
	}
}
