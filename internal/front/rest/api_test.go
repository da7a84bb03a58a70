package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
