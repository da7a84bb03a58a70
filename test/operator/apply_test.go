package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/test/testenv"
)

func TestApplyBringsADefinitionAndItsObjects(t *testing.T) {
	g := newGround(t)
	got, _ := g.apply(widget + "\n---\n" + widgets)
	want := map[string]string{"CustomResourceDefinition widgets." + g.group(): "created", "Widget x": "created"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	second := strings.ReplaceAll(widgets, "  versions:\n", "  versions:\n"+secondVersion)
	got, _ = g.apply(second + "\n---\n" + strings.ReplaceAll(widget, "GROUP/v1", "GROUP/v2"))
	want["CustomResourceDefinition widgets."+g.group()], want["Widget x"] = "updated", "updated" // another version is recorded in it
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestApplyWaitsForServersThatDoNotKnowTheKindYet(t *testing.T) {
	g := newGround(t)
	tries := 0
	g.Client = meddling{Client: g.Client, beforeApply: func(name string) error {
		if name != "x" {
			return nil
		}
		if tries++; tries < 3 {
			return apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{Resource: "widgets"}, "x", "", 0, true)
		}
		return nil
	}}
	g.mustApply(widget + "\n---\n" + widgets)
	if tries != 3 {
		t.Errorf("there were %d tries", tries)
	}
}

func TestApplyTellsWhyADefinitionIsNotServed(t *testing.T) {
	g := newGround(t)
	g.mustApply(widgets)
	got, _ := g.apply(strings.NewReplacer("plural: widgets", "plural: gadgets", "name: widgets", "name: gadgets", "singular: widget",
		"singular: gadget").Replace(widgets) +
		"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: after}}")
	crd := "CustomResourceDefinition gadgets." + g.group()
	if !strings.Contains(got[crd], "its names are taken") {
		t.Errorf("it says %q", got[crd])
	}
	if want := "ConfigMap " + g.Namespace + "/after is applied after " + crd + ", which failed"; got["ConfigMap after"] != want {
		t.Errorf("it says %q, not %q", got["ConfigMap after"], want)
	}
	if g.data("after") != nil {
		t.Error("what comes after a definition that failed was applied")
	}
}

func TestApplyWaitsForADefinitionNoLongerThanItMay(t *testing.T) {
	g := newGround(t)
	ctx, cancel := context.WithCancel(t.Context())
	g.Client = meddling{Client: g.Client, beforeApply: func(string) error { time.AfterFunc(0, cancel); <-ctx.Done(); return nil }}
	results := g.Apply(ctx, g.prepare(widgets+"\n---\n"+widget), nil)
	if len(results) != 2 || results[0].Err == nil || results[1].Err == nil {
		t.Errorf("the results are %v", results)
	}
}

func TestApplyLeavesAloneWhatBelongsToOthers(t *testing.T) {
	g := newGround(t)
	g.create(configMap("theirs", map[string]string{"a": "theirs"}))
	const set = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {a: ours}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ours}, data: {a: ours}}`
	got, results := g.apply(set)
	want := map[string]string{
		"ConfigMap ours": "created",
		"ConfigMap theirs": "ConfigMap " + g.Namespace + "/theirs belongs to somebody else (field managers somebody); rename it in the chart, " +
			"or hand it over with kubectl label -n " + g.Namespace + " configmap theirs clusterstack.x-k8s.io/instance=owned",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !errors.Is(results[1].Err, apply.ErrRefused) {
		t.Error("it is not refused")
	}
	if got := g.data("theirs"); got["a"] != "theirs" {
		t.Errorf("it was overwritten: %v", got)
	}
	g.patch(configMap("theirs", nil), `{"metadata":{"labels":{"`+csv1.OwnedLabel+`":"owned"}}}`)
	if got, _ = g.apply(set); got["ConfigMap theirs"] != "updated" || g.data("theirs")["a"] != "ours" {
		t.Errorf("after it was handed over: %v", got)
	}
}

func TestApplyLeavesAloneWhatBelongsToAnotherRelease(t *testing.T) {
	g := newGround(t)
	owner := func(name string) metav1.OwnerReference {
		c := configMap(name, nil)
		g.create(c)
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: c.UID}
	}
	g.OwnerRefs = []metav1.OwnerReference{owner("release-1")}
	const set = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`
	results := g.mustApply(set)
	if refs := results[0].Object.GetOwnerReferences(); len(refs) != 1 || refs[0].Name != "release-1" {
		t.Errorf("it is owned by %v", refs)
	}
	g.mustApply(set)
	g.OwnerRefs = []metav1.OwnerReference{owner("release-2")}
	got, _ := g.apply(set)
	if !strings.Contains(got["ConfigMap x"], "x belongs to ConfigMap release-1") {
		t.Errorf("it says %q", got["ConfigMap x"])
	}
	if err := apply.JoinErrors(g.Prune(t.Context(), g.prepare(set).Refs())); err != nil || g.data("x") == nil {
		t.Errorf("it was deleted: %v", err)
	}
}

func TestApplyTellsKindsApart(t *testing.T) {
	g := newGround(t)
	const set = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}`
	got, results := g.apply(set)
	want := map[string]string{"ConfigMap x": "created", "Secret x": "created", "ServiceAccount x": "created", "Role x": "created"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	inventory, _ := apply.PlanInventory(nil, g.prepare(set))
	if inventory = apply.RecordResults(inventory, results, nil); len(inventory) != 4 {
		t.Errorf("the inventory is %v", inventory)
	}
}

func TestApplyGoesOnAfterAFailure(t *testing.T) {
	g := newGround(t)
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, data: {"not a key": b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: bad}, type: kubernetes.io/basic-auth, stringData: {token: hunter2}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: homeless, namespace: nowhere}, data: {a: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: c}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NAMESPACE}}`
	set := g.prepare(text)
	intent, stale := apply.PlanInventory(nil, set)
	results := g.Apply(t.Context(), set, apply.TrustSynced(intent))
	got := map[string]string{}
	for _, r := range apply.RecordResults(intent, results, nil) {
		got[r.Kind+" "+r.Name] = string(r.Status) + r.Error
	}
	for name, want := range map[string]string{
		"ConfigMap a":        "synced",
		"ConfigMap bad":      "not-syncedapplying ConfigMap " + g.Namespace + "/bad: ConfigMap \"bad\" is invalid: data[not a key]: ",
		"Secret bad":         "not-syncedapplying Secret " + g.Namespace + "/bad: the API server says Invalid, because of data",
		"ConfigMap homeless": "not-syncedConfigMap nowhere/homeless has no namespace to be in; let the chart bring Namespace nowhere",
		"RoleBinding c":      "synced",
		"ValidatingWebhookConfiguration " + g.Namespace: "synced",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, not %q", name, got[name], want)
		}
	}
	if len(got) != 6 || stale != nil || strings.Contains(fmt.Sprint(results), "hunter2") {
		t.Errorf("%v", got)
	}
}

func TestApplyIntoNamespaces(t *testing.T) {
	g := newGround(t)
	other := shared.Get(t).CreateNamespace(t)
	results := g.mustApply(`{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-new}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NAMESPACE-new}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: ` + other + `}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE, namespace: nowhere}}`)
	got := map[string]bool{}
	for _, r := range results {
		got[r.Object.GetKind()+" "+r.Object.GetNamespace()] = r.Object.GetNamespace() == r.Ref.Namespace
	}
	want := map[string]bool{
		"Namespace ": true, "ConfigMap " + g.Namespace: true, "ConfigMap " + g.Namespace + "-new": true, "ConfigMap " + other: true, "ClusterRole ": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestApplyStopsIfItsNamespaceBelongsToOthers(t *testing.T) {
	g := newGround(t)
	got, results := g.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`)
	if !strings.Contains(got["Namespace "+g.Namespace], "belongs to somebody else") || g.data("x") != nil {
		t.Errorf("it says %v", got)
	}
	if err := apply.JoinErrors(results); errors.Is(err, apply.ErrPending) || !strings.HasPrefix(err.Error(), "Namespace ") {
		t.Errorf("the error is %v", err)
	}
}

func TestApplyCorrectsDrift(t *testing.T) {
	for name, trusted := range map[string]func(apply.Ref) bool{"looking": nil, "trusting": func(apply.Ref) bool { return true }} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			set := g.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: ours, b: ours}}`)
			g.Apply(t.Context(), set, nil)
			g.patch(configMap("x", nil), `{"data":{"a":"theirs","b":null,"c":"theirs"}}`)
			results := g.Apply(t.Context(), set, trusted)
			if results[0].Err != nil {
				t.Fatal(results[0].Err)
			}
			if diff := cmp.Diff(map[string]string{"a": "ours", "b": "ours", "c": "theirs"}, g.data("x")); diff != "" {
				t.Error(diff)
			}
			g.Apply(t.Context(), g.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {b: ours}}`), trusted)
			if diff := cmp.Diff(map[string]string{"b": "ours", "c": "theirs"}, g.data("x")); diff != "" {
				t.Errorf("what we had is not gone: %s", diff)
			}
			if err := g.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "x"}}); err != nil {
				t.Fatal(err)
			}
			if results := g.Apply(t.Context(), set, trusted); results[0].Err != nil || g.data("x")["a"] != "ours" {
				t.Errorf("it was not made anew: %v", results[0].Err)
			}
		})
	}
}

func TestApplyWritesNothingTheSecondTime(t *testing.T) {
	g := newGround(t)
	const text = widgets + "\n---\n" + widget + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, creationTimestamp: null, labels: null}, data: {a: b}, binaryData: null}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}, type: Opaque, stringData: {a: b}, data: {c: ZA==}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, automountServiceAccountToken: false}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: x, namespace: NAMESPACE}]}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}, spec: {hard: {configmaps: "100"}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NAMESPACE}, webhooks: [{name: x.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {url: "https://127.0.0.1:1/x"}, rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}]}`
	set := g.prepare(text)
	first := g.Apply(t.Context(), set, nil)
	if err := apply.JoinErrors(first); err != nil {
		t.Fatal(err)
	}
	settled := map[string]string{}
	testenv.Eventually(t, soon, func() error { // controllers write the status of some, but not for ever
		got := g.Apply(t.Context(), set, nil)
		diff := cmp.Diff(settled, versions(got))
		settled = versions(got)
		for name, change := range g.told(got) {
			if change != string(apply.Unchanged) {
				diff += fmt.Sprintf("%s: %s\n", name, change)
			}
		}
		if diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	got := g.Apply(t.Context(), set, func(apply.Ref) bool { return true })
	if diff := cmp.Diff(settled, versions(got)); diff != "" || apply.JoinErrors(got) != nil || got[0].Change != apply.Unknown {
		t.Error(diff, apply.JoinErrors(got))
	}
}

// The API server does not record who owns a key of stringData, so that it would stay for ever.
func TestApplyOwnsWhatSecretsHaveAsText(t *testing.T) {
	g := newGround(t)
	for _, want := range []map[string][]byte{
		{"kept": []byte("k"), "a": []byte("b")},
		{"kept": []byte("k"), "new": []byte("b")},
	} {
		text := "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {kept: aw==}, stringData: {a: b}}"
		if want["new"] != nil {
			text = strings.ReplaceAll(text, "{a: b}", "{new: b}")
		}
		g.mustApply(text)
		var got corev1.Secret
		if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: "x"}, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Data); diff != "" {
			t.Error(diff)
		}
	}
}

func TestApplySaysWhatCannotBeChanged(t *testing.T) {
	g := newGround(t)
	g.mustApply(`{apiVersion: v1, kind: Secret, metadata: {name: x}, immutable: true, stringData: {a: hunter2}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}}`)
	got, _ := g.apply(`{apiVersion: v1, kind: Secret, metadata: {name: x}, immutable: true, stringData: {a: hunter3}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: other}}`)
	for name, want := range map[string]string{
		"Secret x": "x is there and cannot be changed in data; give it another name in the chart, or let it be made anew with kubectl delete -n " + g.Namespace +
			" secret x",
		"RoleBinding x": "x is there and cannot be changed in roleRef; give it another name in the chart, or let it be made anew with kubectl delete -n " +
			g.Namespace + " rolebinding.rbac.authorization.k8s.io x",
	} {
		if !strings.HasSuffix(got[name], want) {
			t.Errorf("%s: %q", name, got[name])
		}
	}
}

// What was ours and is somebody else's by now is not ours to give advice about.
func TestApplyOfWhatIsSomebodyElsesByNow(t *testing.T) {
	g := newGround(t)
	g.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "x"}, Immutable: ptr.To(true), StringData: map[string]string{"a": "theirs"},
	})
	set := g.prepare(`{apiVersion: v1, kind: Secret, metadata: {name: x}, immutable: true, stringData: {a: ours}}`)
	results := g.Apply(t.Context(), set, func(apply.Ref) bool { return true })
	if err := results[0].Err; !errors.Is(err, apply.ErrRefused) || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("%v", err)
	}
}

func TestApplyWaitsForDeletion(t *testing.T) {
	g := newGround(t)
	leaving := configMap("x", nil)
	leaving.Finalizers = []string{"example.com/wait"}
	g.create(ours(leaving))
	if err := g.Client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	set := g.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`)
	for _, trusted := range []bool{false, true} {
		results := g.Apply(t.Context(), set, func(apply.Ref) bool { return trusted })
		if n := g.requests.Patch.Load(); !trusted && n > 0 {
			t.Error("it was written to")
		}
		if want := "ConfigMap " + g.Namespace + "/x is being deleted; it can be applied once it is gone"; results[0].Err == nil || results[0].Err.Error() != want ||
			!apply.IsPending(results) {
			t.Errorf("trusted %v: it says %v", trusted, results[0].Err)
		}
	}
	g.patch(leaving, `{"metadata":{"finalizers":null}}`)
	if results := g.Apply(t.Context(), set, nil); results[0].Err != nil || g.data("x")["a"] != "b" {
		t.Errorf("after it is gone: %v", results[0].Err)
	}
}

// What happens between our read and our apply must not make us take what is not ours.
func TestApplyTakesNothingThatChangesHands(t *testing.T) {
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: ours}}`
	for name, there := range map[string]bool{"one is made": false, "ours is replaced": true, "ours is deleted": true} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			set := g.prepare(text)
			if there {
				g.Apply(t.Context(), set, nil)
			}
			quiet := g.Client
			g.Client = meddling{Client: quiet, beforeApply: func(string) error {
				if there {
					if err := quiet.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "x"}}); err != nil {
						t.Error(err)
					}
				}
				if name != "ours is deleted" {
					g.create(configMap("x", map[string]string{"a": "theirs"}))
				}
				return nil
			}}
			results := g.Apply(t.Context(), set, nil)
			if want := "ConfigMap " + g.Namespace + "/x was changed by somebody else at the same moment; it is looked at again"; results[0].Err == nil ||
				results[0].Err.Error() != want {
				t.Errorf("it says %v", results[0].Err)
			}
			if got := g.data("x"); name != "ours is deleted" && got["a"] != "theirs" {
				t.Errorf("it has %v", got)
			}
		})
	}
}

func TestApplyEndsWithItsContext(t *testing.T) {
	g := newGround(t)
	set := g.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	results := append(g.Apply(ctx, set, nil), g.Prune(ctx, set.Refs())...)
	for _, r := range results {
		if r.Err == nil || !strings.HasSuffix(r.Err.Error(), "/x: enough") {
			t.Errorf("the error is %v", r.Err)
		}
	}
	if g.requests.Patch.Load() > 0 {
		t.Error("there were requests")
	}
}

// 300 objects are more than any add-on of ours has. The time is for the log only.
func TestApplyNeedsFewRequests(t *testing.T) {
	g := newGround(t)
	var docs []string
	for i := range 300 {
		kind := []string{"ConfigMap", "Secret", "ServiceAccount"}[i%3]
		docs = append(docs, fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: x%d}}", kind, i))
	}
	set := g.prepare(strings.Join(docs, "\n---\n"))
	count := func(what string, get, patch, del int64, f func() []apply.Result) {
		t.Helper()
		before := [3]int64{g.requests.Get.Load(), g.requests.Patch.Load(), g.requests.Delete.Load()}
		start := time.Now()
		if err := apply.JoinErrors(f()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: 300 objects in %v", what, time.Since(start).Round(time.Millisecond))
		after := [3]int64{g.requests.Get.Load() - before[0], g.requests.Patch.Load() - before[1], g.requests.Delete.Load() - before[2]}
		if want := [3]int64{get, patch, del}; after != want {
			t.Errorf("%s: there were %v requests to get, patch and delete, not %v", what, after, want)
		}
	}
	count("making", 300, 300, 0, func() []apply.Result { return g.Apply(t.Context(), set, nil) })
	count("looking", 300, 300, 0, func() []apply.Result { return g.Apply(t.Context(), set, nil) })
	count("trusting", 0, 300, 0, func() []apply.Result { return g.Apply(t.Context(), set, func(apply.Ref) bool { return true }) })
	count("pruning", 600, 0, 300, func() []apply.Result { return g.Prune(t.Context(), set.Refs()) })
	if n := g.requests.Discovery.Load(); n > 5 {
		t.Errorf("there were %d requests for discovery", n)
	}
}
