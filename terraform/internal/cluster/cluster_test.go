package cluster

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/terraform/internal/connect"
)

func TestQuantity(t *testing.T) {
	for _, x := range []struct {
		a, b string
		same bool
	}{
		{"4Gi", "4096Mi", true}, {"4Gi", "4294967296", true}, {"4Gi", "4G", false}, {"1.5Gi", "1536Mi", true},
		{"1e2000000000", "1e2000000000", false}, // reading it takes all memory there is
	} {
		if same, diags := newQuantity(x.a).StringSemanticEquals(t.Context(), newQuantity(x.b)); same != x.same || diags.HasError() {
			t.Errorf("%s and %s: %v %v", x.a, x.b, same, diags)
		}
	}
	for _, bad := range []string{"", "-1", "4 Gi", "4e3", "4Gib", "all"} {
		if _, err := newQuantity(bad).parse(); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestParametersKeepTheirTypes: as long as JSON is the same, a value stays what it was written as.
func TestParametersKeepTheirTypes(t *testing.T) {
	text := types.StringType
	ts := map[string]attr.Type{"names": types.ListType{ElemType: text}, "more": types.MapType{ElemType: text}, "none": text}
	written := types.DynamicValue(types.ObjectValueMust(ts, map[string]attr.Value{
		"names": types.ListValueMust(text, []attr.Value{types.StringValue("a")}),
		"more":  types.MapValueMust(text, map[string]attr.Value{"k": types.StringValue("v")}),
		"none":  types.StringNull(),
	}))
	sent, err := expandParameters(written)
	if err != nil || len(sent) != 2 || string(sent["names"].Raw) != `["a"]` || string(sent["more"].Raw) != `{"k":"v"}` {
		t.Fatalf("%v %s", err, sent)
	}
	if got, err := flattenParameters(written, sent); err != nil || !got.Equal(written) {
		t.Errorf("%v: %s became %s", err, written, got)
	}
	sent["names"].Raw[2] = 'b'
	if got, err := flattenParameters(written, sent); err != nil || got.Equal(written) || !strings.Contains(got.String(), `"b"`) {
		t.Errorf("%v: a change is not seen: %s", err, got)
	}
	if got, err := flattenParameters(written, nil); err != nil || strings.Contains(got.String(), `"a"`) {
		t.Errorf("%v: parameters that are gone are still there: %s", err, got)
	}
	if _, err := expandParameters(types.DynamicValue(types.StringValue("a"))); err == nil {
		t.Error("a text is taken for parameters")
	}
}

// TestPatch: what is not ours, or not known here, stays.
func TestPatch(t *testing.T) {
	is := &v1alpha1.WorkloadCluster{}
	is.Labels, is.Annotations = map[string]string{"ours": "1", "gone": "1", "others": "1"}, map[string]string{"others": "1"}
	is.Spec.Stack = v1alpha1.StackReference{Name: "scs", Version: "v3"}
	is.Spec.Workers = []v1alpha1.WorkerPool{{Name: "w", Replicas: ptr.To[int32](1)}}
	is.Spec.OIDC = &v1alpha1.OIDC{IssuerURL: "https://a"}
	wanted := is.DeepCopy()
	wanted.Labels, wanted.Annotations = map[string]string{"ours": "1", "gone": "1"}, nil
	was := &model{Labels: map[string]string{"ours": "1", "gone": "1"}}
	if p, err := newPatch(is, wanted, was); err != nil || p != nil {
		t.Errorf("nothing differs, and it is %v (%v)", p, err)
	}
	wanted.Labels = map[string]string{"ours": "2", "new": "1"}
	wanted.Spec.Stack.Version, wanted.Spec.OIDC, wanted.Spec.Paused = "", nil, ptr.To(true)
	wanted.Spec.Workers = append(wanted.Spec.Workers, v1alpha1.WorkerPool{Name: "x"})
	p, err := newPatch(is, wanted, was)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p)
	const want = `{"metadata":{"labels":{"gone":null,"new":"1","ours":"2"}},"spec":{"oidc":null,"paused":true,"stack":{"version":null},"workers":[{"name":"w","replicas":1},{"name":"x"}]}}`
	if d := cmp.Diff(want, string(b)); d != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, d)
	}
}

// TestJudge: only what the plane says of the spec as it is now counts.
func TestJudge(t *testing.T) {
	ready := func(g int64, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, ObservedGeneration: g}}
	}
	for name, x := range map[string]struct {
		status           v1alpha1.WorkloadClusterStatus
		paused           bool
		settled, mustAct bool
	}{
		"nothing said yet":       {},
		"ready":                  {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Conditions: ready(2, metav1.ConditionTrue)}, settled: true},
		"ready, of another spec": {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 1, Conditions: ready(1, metav1.ConditionTrue)}},
		"an older condition":     {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Conditions: ready(1, metav1.ConditionTrue)}},
		"not ready":              {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Conditions: ready(2, metav1.ConditionFalse), Phase: v1alpha1.PhaseCreating}},
		"stalled":                {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Phase: v1alpha1.PhaseStalled}, mustAct: true},
		"stalled before":         {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseStalled}},
		"paused, as it should":   {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Phase: v1alpha1.PhasePaused}, paused: true, settled: true},
		"paused by somebody":     {status: v1alpha1.WorkloadClusterStatus{ObservedGeneration: 2, Phase: v1alpha1.PhasePaused}, mustAct: true},
	} {
		o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: x.status}
		o.Spec.Paused = ptr.To(x.paused)
		if settled, mustAct := judge(o); settled != x.settled || mustAct != x.mustAct {
			t.Errorf("%s: %v %v", name, settled, mustAct)
		}
	}
}

func TestDescribe(t *testing.T) {
	o := &v1alpha1.WorkloadCluster{}
	o.Status = v1alpha1.WorkloadClusterStatus{Message: "the quota is too small.", Actor: v1alpha1.PlatformOperator, NextStep: "raise it"}
	if got, want := describe(o), "the quota is too small; the plane's operator must act; raise it"; got != want {
		t.Errorf("%q is not %q", got, want)
	}
	if got := describe(&v1alpha1.WorkloadCluster{}); !strings.Contains(got, "has not said yet") {
		t.Error(got)
	}
}

// TestWaitEnds: whoever must act is waited for only if time helps.
func TestWaitEnds(t *testing.T) {
	o := &v1alpha1.WorkloadCluster{}
	o.Name, o.Generation = "demo", 1
	o.Status = v1alpha1.WorkloadClusterStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseStalled, Actor: v1alpha1.Customer, Message: "no such zone", NextStep: "choose another"}
	got, err := clusters{}.awaitReady(t.Context(), o, time.Hour)
	if got != o || !errors.Is(err, errNotReady) || !strings.Contains(err.Error(), "no such zone; you must act; choose another") {
		t.Errorf("%v %v", got, err)
	}
	o.Status.Phase = v1alpha1.PhaseCreating
	got, err = clusters{}.awaitReady(t.Context(), o, time.Nanosecond)
	if got != o || !errors.Is(err, errNotReady) || !strings.Contains(err.Error(), "after 1ns") {
		t.Errorf("%v %v", got, err)
	}
}

func TestExplainNamesAttributes(t *testing.T) {
	p := &client.Problem{Status: http.StatusUnprocessableEntity, Detail: "all of it", Errors: []client.ProblemField{
		{Location: "spec.workers[0].replicas", Message: "too many"}, {Location: "somewhere", Message: "odd"},
	}}
	got := connect.Explain("Refused", p, locate)
	if len(got) != 2 || !strings.Contains(got[0].Detail(), "too many") || got[1].Detail() != "somewhere: odd" {
		t.Fatalf("%v", got)
	}
	if w, ok := got[0].(diag.DiagnosticWithPath); !ok || w.Path().String() != "workers" || w.Detail() != "workers[0].replicas: too many" {
		t.Errorf("%v names no attribute", got[0])
	}
	if got := connect.Explain("Refused", &client.Problem{Status: 403, Detail: "you may not"}, locate); len(got) != 1 || got[0].Detail() != "you may not" {
		t.Errorf("%v", got)
	}
}

func TestIdempotencyKey(t *testing.T) {
	a, b := &v1alpha1.WorkloadCluster{}, &v1alpha1.WorkloadCluster{}
	a.Name, b.Name = "a", "a"
	if idempotencyKey("t", a) != idempotencyKey("t", b) {
		t.Error("the same cluster has two keys")
	}
	if idempotencyKey("t", a) == idempotencyKey("u", a) {
		t.Error("two tenants have one key")
	}
	if b.Spec.Paused = ptr.To(true); idempotencyKey("t", a) == idempotencyKey("t", b) {
		t.Error("two clusters have one key")
	}
}
