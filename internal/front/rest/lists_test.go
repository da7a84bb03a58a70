package rest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a list shows of an object is what reading it alone shows.
func TestPresentRaw(t *testing.T) {
	for name, object := range map[string]string{
		"all": `{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"a","namespace":"t","uid":"1","resourceVersion":"7","generation":9007199254740993,
			"labels":{"x":"<y>"},"annotations":{"mine":"1","polder.dev/idempotency-key":"hash","kubectl.kubernetes.io/last-applied-configuration":"{}"},"ownerReferences":[{"name":"o"}],
			"managedFields":[{"manager":"m"}],"finalizers":["f"]},"spec":{"n":1.50,"big":9007199254740993,"s":"ü\u2028"},"status":{"phase":"Ready"},"more":[1,null]}`,
		"hidden annotations alone": `{"kind":"K","metadata":{"name":"a","annotations":{"polder.dev/idempotency-key":"hash"}}}`,
		"nothing":                  `{"metadata":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(object), &u.Object); err != nil {
				t.Fatal(err)
			}
			var item map[string]json.RawMessage
			if err := json.Unmarshal([]byte(object), &item); err != nil {
				t.Fatal(err)
			}
			l, err := newList[clusterObject]([]map[string]json.RawMessage{item}, "next")
			if err != nil || l.Body.NextPageToken != "next" {
				t.Fatalf("%v %v", l, err)
			}
			if d := cmp.Diff(decoded(t, present(u)), decoded(t, l.Body.Items[0])); d != "" {
				t.Errorf("alone -, in a list +:\n%s", d)
			}
		})
	}
	kept, err := presentRaw(map[string]json.RawMessage{"metadata": json.RawMessage(`{"namespace":"t"}`)}, "namespace")
	if err != nil || cmp.Diff(decoded(t, kept), any(map[string]any{"metadata": map[string]any{"namespace": "t"}})) != "" {
		t.Errorf("%v %v", kept, err)
	}
	if _, err := presentRaw(map[string]json.RawMessage{"metadata": json.RawMessage(`"x"`)}); err == nil {
		t.Error("metadata that is no object is taken")
	}
}

func decoded(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
