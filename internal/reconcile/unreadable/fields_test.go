package unreadable

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func decodeWorkload(raw []byte) error {
	k := kindFilter{goType: reflect.TypeFor[v1alpha1.WorkloadCluster]()}
	return k.decode(raw)
}

func TestRemoveUnreadable(t *testing.T) {
	for name, c := range map[string]struct{ raw, left, problem string }{
		"a number for text": {`{"metadata":{"name":"a"},"spec":{"provider":5,"stack":{"name":"b"}}}`,
			`{"metadata":{"name":"a"},"spec":{"stack":{"name":"b"}}}`, "spec.provider holds a number where text belongs"},
		"text for an object": {`{"spec":{"stack":"b"}}`, `{"spec":{}}`, "spec.stack holds text where an object belongs"},
		"deep inside": {`{"spec":{"stack":{"name":{},"kubernetesVersion":"1"}}}`, `{"spec":{"stack":{"kubernetesVersion":"1"}}}`,
			"spec.stack.name holds an object where text belongs"},
		"inside a list":  {`{"spec":{"workers":[{"name":"a"},{"name":true}]}}`, `{"spec":{}}`, "spec.workers.name holds true or false where text belongs"},
		"no spec at all": {`{"spec":[]}`, `{}`, "spec holds a list where an object belongs"},
		"several": {`{"spec":{"provider":1,"paused":"a","controlPlane":{"replicas":"3"}}}`, `{"spec":{"controlPlane":{}}}`,
			"spec.controlPlane.replicas holds text where a number belongs (and 2 more fields are wrong)"},
	} {
		t.Run(name, func(t *testing.T) {
			o, wrong := removeUnreadable([]byte(c.raw), decodeWorkload)
			left, err := json.Marshal(o)
			if err != nil || string(left) != c.left {
				t.Errorf("left is %s, want %s; %v", left, c.left, err)
			}
			if got := describeFields(wrong, nil); got != c.problem {
				t.Errorf("%q, want %q", got, c.problem)
			}
		})
	}
}

func TestRemoveUnreadableWithOwnDecoding(t *testing.T) {
	o, wrong := removeUnreadable([]byte(`{"metadata":{"name":"a"},"spec":{"workers":[{"machine":{"memory":"much"}}]}}`), decodeWorkload)
	if got := describeFields(wrong, nil); o == nil || !strings.HasPrefix(got, "spec.workers cannot be read: ") {
		t.Errorf("%v, %q", o, got)
	}
}

func FuzzRemoveUnreadable(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"spec":5}`, `{"spec":{"stack":{"name":5}}}`, `{"metadata":{"labels":{"a":1}}}`, `{"spec":{"workers":[{"replicas":"a"}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, _ := removeUnreadable(raw, decodeWorkload)
		if b, err := json.Marshal(o); o != nil && (err != nil || decodeWorkload(b) != nil) {
			t.Errorf("%s cannot be read either", b)
		}
	})
}
