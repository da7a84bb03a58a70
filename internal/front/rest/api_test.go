package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"testing"
)

func TestDocument(t *testing.T) {
	a, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/openapi.json", "/v1/openapi-3.0.json"} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		var d map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != http.StatusOK {
			t.Errorf("%s: %d %v", path, w.Code, err)
		}
		t.Log(len(w.Body.Bytes()), d["openapi"])
	}
}

// Members and robots of a Tenant can be named here as there.
func TestBoundsOfTenants(t *testing.T) {
	s, err := readKindSchema("Tenant")
	if err != nil {
		t.Fatal(err)
	}
	field := func(list string) (length int, pattern string) {
		f := s.Properties["spec"].Properties[list].Items.Properties["name"]
		return *f.MaxLength, f.Pattern
	}
	tag := func(of reflect.Type, name string) (length, pattern string) {
		f, ok := of.FieldByName(name)
		if !ok {
			t.Fatalf("%s has no %s", of, name)
		}
		return f.Tag.Get("maxLength"), f.Tag.Get("pattern")
	}
	for list, at := range map[string]struct {
		of   reflect.Type
		name string
	}{"members": {typeOf[Member](), "Name"}, "robots": {typeOf[RobotPath](), "Robot"}} {
		wantLength, wantPattern := field(list)
		length, pattern := tag(at.of, at.name)
		if length != strconv.Itoa(wantLength) || pattern != wantPattern {
			t.Errorf("%s: %s %s, in a Tenant %d %s", list, length, pattern, wantLength, wantPattern)
		}
	}
}
