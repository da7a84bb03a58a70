package registry_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

func tgz(t testing.TB, files map[string]string) []byte {
	t.Helper()
	tree := archive.Tree{}
	for name, text := range files {
		tree[name] = []byte(text)
	}
	var b bytes.Buffer
	if err := archive.Write(&b, tree); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// files gives the files of a release docker-ferrol-1-27 in a version, and further ones.
func files(t testing.TB, v string, more archive.Tree) archive.Tree {
	t.Helper()
	f := archive.Tree{
		"metadata.yaml": []byte("apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n  clusterStack: " + v +
			"\n  kubernetes: v1.27.3\n  components:\n    clusterAddon: v2\n"),
		"hashes.json": []byte(`{"clusterStack":"abcdefghijk"}`),
		"docker-ferrol-1-27-cluster-class-" + v + ".tgz": tgz(t, map[string]string{"c/Chart.yaml": "name: class"}),
		"docker-ferrol-1-27-cluster-addon-v2.tgz":        tgz(t, map[string]string{"c/Chart.yaml": "name: addon"}),
	}
	maps.Copy(f, more)
	return f
}

func release(t testing.TB, v string, more archive.Tree) *stack.Release {
	t.Helper()
	r, err := stack.Load("docker-ferrol-1-27-"+strings.ReplaceAll(v, ".", "-"), files(t, v, more))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// middleware stands between a client and a registry.
type middleware func(next http.Handler) http.Handler

// start runs a registry on this machine, and returns the reference to a repository of it. What it
// is wrapped in comes from outside to inside.
func start(t testing.TB, around ...middleware) string {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	for i := range around {
		h = around[len(around)-1-i](h)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return "oci://" + s.Listener.Addr().String() + "/kaas/stacks"
}

func open(t testing.TB, ref string, o stacks.Options) (stacks.Store, stacks.Reference) {
	t.Helper()
	s, r, err := stacks.Open(t.Context(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func publish(t testing.TB, s stacks.Store, r *stack.Release) stacks.Published {
	t.Helper()
	p, err := s.Publish(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// put writes something to a registry as it is, past all checks.
func put(t testing.TB, ref, path, mediaType string, b []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, strings.Replace(ref, "oci://", "http://", 1)+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Path = "/v2" + req.URL.Path
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", path, resp.Status)
	}
}

func putBlob(t testing.TB, ref string, b []byte) digest.Digest {
	t.Helper()
	d := digest.FromBytes(b)
	put(t, ref, "/blobs/uploads/1?digest="+d.String(), "application/octet-stream", b)
	return d
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func putManifest(t testing.TB, ref, tag, manifest string) string {
	t.Helper()
	put(t, ref, "/manifests/"+tag, manifestType, []byte(manifest))
	return digest.FromString(manifest).String()
}

// at calls do instead of the registry, for requests whose method and path match.
func at(pattern string, do func(w http.ResponseWriter, r *http.Request, next http.Handler)) middleware {
	p := regexp.MustCompile(pattern)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.MatchString(r.Method + " " + r.URL.Path) {
				do(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// change changes the body of answers. The header stays, but for the length.
func change(pattern string, by func(body []byte) []byte) middleware {
	return at(pattern, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		body := by(rec.Body.Bytes())
		maps.Copy(w.Header(), rec.Header())
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body)
	})
}

// cut ends the connection after half of what the registry has to say.
func cut(pattern string) middleware {
	return at(pattern, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	})
}

// count counts requests by their method.
type count struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *count) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		if c.n == nil {
			c.n = map[string]int{}
		}
		c.n[r.Method]++
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (c *count) of(methods ...string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range methods {
		n += c.n[m]
	}
	return n
}
