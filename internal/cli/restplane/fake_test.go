package restplane

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// fakeAPI answers as the REST API does, by method and path with query. What a real one answers is tested in
// test/service.
type fakeAPI struct {
	*httptest.Server
	mu       sync.Mutex
	answers  map[string]reply
	requests []string // method and path with query
	bodies   map[string]string
	headers  map[string]http.Header
}

type reply struct {
	code int
	body string
	tag  string
}

func newFakeAPI(t *testing.T, answers map[string]reply) *fakeAPI {
	t.Helper()
	f := &fakeAPI{answers: answers, bodies: map[string]string{}, headers: map[string]http.Header{}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.RequestURI()
	b, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.requests = append(f.requests, key)
	f.bodies[key], f.headers[key] = string(b), r.Header
	a, ok := f.answers[key]
	f.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		a = problem(401, "", "no token")
	case !ok:
		a = problem(404, "NotFound", "there is nothing")
	}
	switch {
	case a.code >= 400:
		w.Header().Set("Content-Type", "application/problem+json")
	case a.code >= 300:
		w.Header().Set("Location", a.body)
	}
	w.WriteHeader(a.code)
	fmt.Fprint(w, a.body)
}

func (f *fakeAPI) body(t *testing.T, key string) (o object) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := json.Unmarshal([]byte(f.bodies[key]), &o); err != nil {
		t.Fatalf("%s: %v in %v", key, err, f.requests)
	}
	return o
}

func problem(code int, reason, detail string, fields ...string) reply {
	p := map[string]any{"type": "about:blank", "title": http.StatusText(code), "status": code, "reason": reason, "detail": detail}
	var all []map[string]string
	for i := 0; i+1 < len(fields); i += 2 {
		all = append(all, map[string]string{"location": fields[i], "message": fields[i+1]})
	}
	p["errors"] = all
	b, _ := json.Marshal(p)
	return reply{code: code, body: string(b)}
}

func cluster(name, uid, resourceVersion string) string {
	return fmt.Sprintf(`{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":%q,"uid":%q,"resourceVersion":%q,"generation":9007199254740993}}`, name, uid, resourceVersion)
}

// config is how a client reaches the fake.
func (f *fakeAPI) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	c := &rest.Config{Host: f.URL + "/v1/", BearerToken: "secret", QPS: -1}
	c.CAData = ca
	Use(c)
	return c
}

func (f *fakeAPI) client(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(f.config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
