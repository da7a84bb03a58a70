package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a list shows of an object is what reading it alone shows.
func TestListAsWritten(t *testing.T) {
	for name, object := range map[string]string{
		"all": `{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"a","namespace":"t","uid":"1","resourceVersion":"7","generation":9007199254740993,
			"labels":{"x":"<y>"},"annotations":{"mine":"1","polder.dev/idempotency-key":"hash","kubectl.kubernetes.io/last-applied-configuration":"{}"},"ownerReferences":[{"name":"o"}],
			"managedFields":[{"manager":"m"}],"finalizers":["f"]},"spec":{"n":1.50,"big":9007199254740993,"s":"ü\u2028"},"status":{"phase":"Ready","more":[1,null]}}`,
		"hidden annotations alone": `{"kind":"K","metadata":{"name":"a","annotations":{"polder.dev/idempotency-key":"hash"}}}`,
		"nothing":                  `{"metadata":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(object), &u.Object); err != nil {
				t.Fatal(err)
			}
			var item rawObject
			if err := json.Unmarshal([]byte(object), &item); err != nil {
				t.Fatal(err)
			}
			l, err := newList[clusterObject]([]rawObject{item, item}, "next")
			if err != nil || l.Body.NextPageToken != "next" {
				t.Fatalf("%v %v", l, err)
			}
			if d := cmp.Diff(decoded(t, present(u)), decoded(t, l.Body.Items[0])); d != "" {
				t.Errorf("alone -, in a list +:\n%s", d)
			}
			for _, next := range []string{"next", ""} {
				l.Body.NextPageToken = next
				var ours, humas bytes.Buffer
				if err := errors.Join(marshalJSON(&ours, l.Body), huma.DefaultJSONFormat.Marshal(&humas, l.Body)); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(decoded(t, json.RawMessage(humas.Bytes())), decoded(t, json.RawMessage(ours.Bytes()))); d != "" {
					t.Errorf("as huma writes it -, as we do +:\n%s", d)
				}
			}
		})
	}
	kept, err := rawObject{Metadata: map[string]json.RawMessage{"namespace": json.RawMessage(`"t"`)}}.present("namespace")
	if err != nil || cmp.Diff(decoded(t, kept), any(map[string]any{"metadata": map[string]any{"namespace": "t"}})) != "" {
		t.Errorf("%v %v", kept, err)
	}
	if _, err := (rawObject{Metadata: map[string]json.RawMessage{"annotations": json.RawMessage(`"x"`)}}).present(); err == nil {
		t.Error("annotations that are no object are taken")
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
