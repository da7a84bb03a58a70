package reconciletest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func stateOf(t *testing.T, document string) state {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(document), o); err != nil {
		t.Fatal(err)
	}
	h := &harness{subject: Subject{Normalize: func(*unstructured.Unstructured) {}}}
	return h.normalizedState(snapshot{"Thing/a": *o}, o.GetNamespace())
}

const thing = `{"apiVersion":"g/v1","kind":"Thing",
"metadata":{"name":"a","namespace":"n-1","uid":"u","resourceVersion":"1","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"l":"v"},"finalizers":["f"]},
"spec":{"id":"x://n-1/a","port":1},
"status":{"conditions":[
	{"type":"A","status":"True","observedGeneration":2,"lastTransitionTime":"2026-01-01T00:00:00Z"},
	{"type":"B","status":"True","message":"of 01234567-89ab-cdef-0123-456789abcdef"}]}}`

func TestSameState(t *testing.T) {
	for name, other := range map[string]string{
		"itself": thing,
		"another run": `{"apiVersion":"g/v1","kind":"Thing",
"metadata":{"name":"a","namespace":"n-2","uid":"w","resourceVersion":"7","generation":5,"creationTimestamp":"2027-01-01T00:00:00Z","managedFields":[],
	"labels":{"l":"v","reconciletest.polder.dev/storm":"1"},"annotations":{"reconciletest.polder.dev/storm":"1"},"finalizers":["f"]},
"spec":{"id":"x://n-2/a","port":1},
"status":{"conditions":[
	{"type":"B","status":"True","message":"of 11234567-89ab-cdef-0123-456789abcdef"},
	{"type":"A","status":"True","observedGeneration":5,"lastTransitionTime":"2027-01-01T00:00:00Z"}]}}`,
	} {
		if d := diff(stateOf(t, thing), stateOf(t, other)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestOtherState(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"spec":             {"spec": map[string]any{"id": "x://n-1/a", "port": int64(2)}},
		"a past condition": {"status": map[string]any{"conditions": []any{map[string]any{"type": "A", "status": "True", "observedGeneration": int64(1)}}}},
		"being deleted": {"metadata": map[string]any{
			"name": "a", "namespace": "n-1", "labels": map[string]any{"l": "v"}, "finalizers": []any{"f"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
		}},
	} {
		var o map[string]any
		if err := json.Unmarshal([]byte(thing), &o); err != nil {
			t.Fatal(err)
		}
		for k, v := range change {
			o[k] = v
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff(stateOf(t, thing), stateOf(t, string(b))) == "" {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestStringEdits(t *testing.T) {
	b, err := json.Marshal(stringEdits(map[string]any{"b": "2", "a": map[string]any{"c": "3"}, "n": int64(1)}))
	if want := `[{"a":{"c":"3x"}},{"a":{"c":null}},{"b":"2x"},{"b":null}]`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
}
