package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
)

// What a patch may change, and what becomes of its version: one that no object can have is not the current one.
func TestRestrictPatch(t *testing.T) {
	for _, x := range []struct {
		patch, version string
		code           int // 0: it is taken
		want           string
	}{
		{`{"spec":{"paused":true}}`, "", 0, `{"spec":{"paused":true}}`},
		{`{"metadata":{"labels":{"a":null}}}`, "17", 0, `{"metadata":{"labels":{"a":null},"resourceVersion":"17"}}`},
		{`{"spec":{}}`, "17", 0, `{"metadata":{"resourceVersion":"17"},"spec":{}}`},
		{`{"metadata":{"resourceVersion":"16"}}`, "", 0, `{"metadata":{"resourceVersion":"16"}}`},
		{`{"metadata":{"resourceVersion":"16"}}`, "17", 0, `{"metadata":{"resourceVersion":"17"}}`},
		{`{"spec":{}}`, "none", http.StatusPreconditionFailed, ""},
		{`{"spec":{}}`, "0", http.StatusPreconditionFailed, ""},
		{`{"spec":{}}`, "-1", http.StatusPreconditionFailed, ""},
		{`{"spec":{}}`, "99999999999999999999", http.StatusPreconditionFailed, ""},
		{`{"metadata":{"resourceVersion":"none"}}`, "", http.StatusPreconditionFailed, ""},
		{`{"metadata":{"resourceVersion":17}}`, "", http.StatusUnprocessableEntity, ""},
		{`{"metadata":{"resourceVersion":null}}`, "", http.StatusUnprocessableEntity, ""},
		{`{"metadata":{"name":"b"}}`, "", http.StatusUnprocessableEntity, ""},
		{`{"metadata":[]}`, "", http.StatusUnprocessableEntity, ""},
		{`{"status":{}}`, "", http.StatusUnprocessableEntity, ""},
	} {
		var patch map[string]any
		if err := json.Unmarshal([]byte(x.patch), &patch); err != nil {
			t.Fatal(err)
		}
		err := restrictPatch(patch, "a", x.version)
		var p *Problem
		if x.code != 0 {
			if !errors.As(err, &p) || p.Status != x.code {
				t.Errorf("%s of version %q: %v, want %d", x.patch, x.version, err, x.code)
			}
			continue
		}
		if got, _ := json.Marshal(patch); err != nil || string(got) != x.want {
			t.Errorf("%s of version %q: %s, %v", x.patch, x.version, got, err)
		}
	}
}
