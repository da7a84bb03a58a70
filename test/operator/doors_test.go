package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/polder-kaas/polder/stack"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
)

// doors is a server of registries whose repositories each behave as its test wants.
type doors struct {
	mu       sync.Mutex
	handlers map[string]http.Handler // by the name of the repository
}

func (d *doors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
	d.mu.Lock()
	h := d.handlers[name]
	d.mu.Unlock()
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h.ServeHTTP(w, r)
}

// set says how a repository behaves from now on.
func (d *doors) set(repository string, h http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handlers == nil {
		d.handlers = map[string]http.Handler{}
	}
	d.handlers[repository] = h
}

// newRegistry is a real registry, without a server.
func newRegistry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// at is the reference of a repository on one of these servers.
func at(s *httptest.Server, repository string) string { return "oci://" + hostOf(s) + "/" + repository }

// publishAt publishes releases with options, for example over others of their names.
func publishAt(t *testing.T, where string, o stackregistry.Options, releases ...*stack.Release) (digests []string) {
	t.Helper()
	store, _, err := stackregistry.Open(t.Context(), where, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		p, err := store.Publish(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, p.Reference.Digest)
	}
	return digests
}

// withLogin lets in who has a password.
func withLogin(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// inPages lists tags in pages of a few, as large registries do whatever page size is asked for.
func inPages(most int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/tags/list") {
			next.ServeHTTP(w, r)
			return
		}
		q := r.URL.Query()
		q.Set("n", fmt.Sprint(most))
		r.URL.RawQuery = q.Encode()
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		var page struct{ Tags []string }
		if err := json.Unmarshal(rec.Body.Bytes(), &page); err == nil && len(page.Tags) == most {
			w.Header().Set("Link", fmt.Sprintf(`<%s?n=%d&last=%s>; rel="next"`, r.URL.Path, most, page.Tags[most-1]))
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// tagAs gives the manifest of a tag other tags, as no tool of ours would.
func tagAs(t *testing.T, h http.Handler, repository, tag string, others ...string) {
	t.Helper()
	send := func(method, tag, body, kind string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), method, "/v2/"+repository+"/manifests/"+tag, strings.NewReader(body))
		req.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, tag, rec.Code, rec.Body)
		}
		return rec
	}
	got := send(http.MethodGet, tag, "", "")
	for _, o := range others {
		send(http.MethodPut, o, got.Body.String(), got.Header().Get("Content-Type"))
	}
}

// silently never answers.
func silently(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
