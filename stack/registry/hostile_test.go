package registry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/fetch"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

func layer(title string, size int64) string {
	return fmt.Sprintf(`{"mediaType":"application/octet-stream","digest":"sha256:%064d","size":%d,"annotations":{"org.opencontainers.image.title":%q}}`,
		max(size, 0), size, title)
}

func manifest(layers ...string) string {
	return `{"schemaVersion":2,"mediaType":"` + manifestType + `","artifactType":"application/vnd.scs.cluster-stacks.v1","config":{},"layers":[` +
		strings.Join(layers, ",") + `]}`
}

func TestHostileManifests(t *testing.T) {
	var many []string
	for i := range 65 {
		many = append(many, layer(fmt.Sprintf("f%d", i), 1))
	}
	for name, c := range map[string]struct{ manifest, want string }{
		"65 layers":               {manifest(many...), "the manifest has 65 layers; at most 64 are taken"},
		"no title":                {manifest(`{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}`), "layer 1: its title has no name"},
		"a path":                  {manifest(layer("a/b", 1)), `layer 1: its title "a/b" is no plain name of a file`},
		"outside":                 {manifest(layer("ok", 1), layer("../evil", 1)), `layer 2: its title "../evil" is no plain name`},
		"only dots":               {manifest(layer("..", 1)), "is no plain name"},
		"absolute":                {manifest(layer("/etc/passwd", 1)), "is no plain name"},
		"a backslash":             {manifest(layer(`a\b`, 1)), "is no plain name"},
		"a line break":            {manifest(layer("a\nb", 1)), "is no plain name"},
		"look-alike letters":      {manifest(layer("metаdata.yaml", 1)), "is no plain name"},
		"a long name":             {manifest(layer(strings.Repeat("n", 300), 1)), "is no plain name"},
		"twice":                   {manifest(layer("a", 1), layer("a", 2)), `"a" is there twice`},
		"twice but for case":      {manifest(layer("a", 1), layer("A", 2)), `"A" is there twice`},
		"a large layer":           {manifest(layer("a", 32<<20+1)), "layer 1 has 33554433 bytes; at most 33554432 are taken"},
		"large together":          {manifest(layer("a", 20<<20), layer("b", 20<<20)), "the layers have more than the 33554432 bytes that are taken"},
		"so large that it is not": {manifest(layer("a", 1<<62), layer("b", 1<<62), layer("c", 1<<62)), "layer 1 has"},
		"a negative size":         {manifest(layer("a", -1)), "layer 1 has -1 bytes"},
		"a path as digest":        {manifest(strings.Replace(layer("a", 1), "sha256:", "../", 1)), "is no digest of sha256"},
		"a digest of another kind": {manifest(`{"digest":"sha512:` + strings.Repeat("0", 128) + `","size":1,"annotations":{"org.opencontainers.image.title":"a"}}`),
			"is no digest of sha256"},
		"another artifact": {strings.Replace(manifest(), "scs.cluster-stacks", "cncf.helm", 1),
			`this is no release of a cluster stack: its artifact type is "application/vnd.cncf.helm.v1", not`},
		"no artifact type":  {`{"schemaVersion":2,"layers":[]}`, `its artifact type is ""`},
		"an index inside":   {strings.Replace(manifest(), manifestType, "application/vnd.oci.image.index.v1+json", 1), "this is no image manifest, but"},
		"no manifest":       {"[]", "the manifest is no JSON of a manifest"},
		"no layers":         {manifest(), "metadata.yaml is missing, so this is no release"},
		"a large manifest":  {strings.Repeat(" ", 4<<20) + manifest(), "at most 4194304 are taken"},
		"layers not there":  {manifest(layer("a", 1)), "a: it is not in oci://"},
		"an image manifest": {`{"schemaVersion":1}`, "this is no image manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := start(t)
			d := putManifest(t, ref, v3, c.manifest)
			s, r := open(t, ref, stacks.Options{})
			for _, by := range []stacks.Reference{r.WithTag(v3), {Digest: d}} {
				p, err := s.Pull(t.Context(), by)
				if p != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, want %s", err, c.want)
				}
				if errors.Is(err, stacks.ErrInvalid) == errors.Is(err, stacks.ErrNotFound) { // one of both
					t.Errorf("%v: of which kind is it?", err)
				}
			}
		})
	}
	t.Run("another media type", func(t *testing.T) {
		ref := start(t)
		put(t, ref, "/manifests/"+v3, "application/vnd.docker.distribution.manifest.v2+json", []byte(manifest()))
		s, r := open(t, ref, stacks.Options{})
		if _, err := s.Pull(t.Context(), r.WithTag(v3)); err == nil || !strings.Contains(err.Error(), "this is no image manifest, but") {
			t.Error(err)
		}
	})
}

// A layer must have the size its manifest says.
func TestLyingSizes(t *testing.T) {
	for name, size := range map[string]int64{"more than there is": 101, "less than there is": 99, "nothing": 0} {
		for _, chunked := range []bool{false, true} { // with the length of the answer, and without
			ref := start(t, at("^GET .*/blobs/", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if chunked {
					rec := httptest.NewRecorder()
					next.ServeHTTP(rec, r)
					_, _ = w.Write(rec.Body.Bytes())
					_ = http.NewResponseController(w).Flush()
					return
				}
				next.ServeHTTP(w, r)
			}))
			d := putBlob(t, ref, make([]byte, 100))
			putManifest(t, ref, v3, manifest(fmt.Sprintf(`{"digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":"a"}}`, d, size)))
			s, r := open(t, ref, stacks.Options{})
			if p, err := s.Pull(t.Context(), r.WithTag(v3)); p != nil || err == nil || !strings.Contains(err.Error(), ": a: ") {
				t.Errorf("%s, chunked %v: %v", name, chunked, err)
			}
		}
	}
}

// Whatever bit is changed on the way, of whichever answer, it is found out.
func TestTampering(t *testing.T) {
	var answer, bit atomic.Int64
	var flipped atomic.Bool
	flip := func(b []byte) []byte {
		if answer.Add(-1) == 0 && len(b) > 0 {
			i := bit.Load() % int64(len(b)*8)
			b[i/8] ^= 1 << (i % 8)
			flipped.Store(true)
		}
		return b
	}
	ref := start(t, change("^GET .*/(blobs|manifests)/", flip))
	s, r := open(t, ref, stacks.Options{})
	p := publish(t, s, release(t, "v3", archive.Tree{"more.txt": []byte("more")}))
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := random.Int64N(6) + 1 // a manifest and five files
		answer.Store(n)
		bit.Store(random.Int64())
		flipped.Store(false)
		by := r.WithTag(v3)
		if n%2 == 0 {
			by = stacks.Reference{Digest: p.Reference.Digest}
		}
		if got, err := s.Pull(t.Context(), by); !flipped.Load() || got != nil || !errors.Is(err, stacks.ErrDigest) {
			t.Fatalf("answer %d, bit %d, flipped %v: %v", n, bit.Load(), flipped.Load(), err)
		}
	}
	answer.Store(0)
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil {
		t.Errorf("untouched: %v", err)
	}
}

// Another manifest under the digest that was asked for is not taken, whatever the header says.
func TestSwappedManifest(t *testing.T) {
	ref := start(t)
	other := putManifest(t, ref, "docker-ferrol-1-27-v4", manifest())
	swap := func(header bool) string {
		return start(t, at("^(GET|HEAD) .*/manifests/", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			b := manifest()
			w.Header().Set("Content-Type", manifestType)
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			if header {
				w.Header().Set("Docker-Content-Digest", other)
			}
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte(b))
			}
		}))
	}
	wanted := digest.FromString("another").String()
	for _, header := range []bool{true, false} {
		s, r := open(t, swap(header), stacks.Options{})
		if p, err := s.Pull(t.Context(), stacks.Reference{Digest: wanted}); p != nil || err == nil || !strings.Contains(err.Error(), "digest") {
			t.Errorf("header %v: %v", header, err)
		}
		ref := r.WithTag(v3)
		ref.Digest = wanted
		if p, err := s.Pull(t.Context(), ref); p != nil || err == nil || header && !errors.Is(err, stacks.ErrMoved) {
			t.Errorf("by both, header %v: %v", header, err)
		}
	}
}

// A publication that is cut leaves no tag, wherever it is cut; the next one goes through.
func TestCutWhilePublishing(t *testing.T) {
	var left atomic.Int32
	stop := at("^(PUT|POST) ", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if left.Add(-1) == 0 {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
			return
		}
		next.ServeHTTP(w, r)
	})
	for n := range 11 { // five blobs by two requests each, and the manifest
		left.Store(0)
		ref := start(t, stop)
		s, r := open(t, ref, stacks.Options{})
		putManifest(t, ref, "docker-ferrol-1-27-v1", manifest())
		left.Store(int32(n + 1))
		_, err := s.Publish(t.Context(), release(t, "v3", nil))
		if err == nil || !strings.Contains(err.Error(), "ended the connection too early") {
			t.Errorf("cut at %d: %v", n+1, err)
		}
		if _, err := s.Pull(t.Context(), r.WithTag(v3)); !errors.Is(err, stacks.ErrNotFound) {
			t.Errorf("cut at %d, then: %v", n+1, err)
		}
		publish(t, s, release(t, "v3", nil))
		if _, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil {
			t.Errorf("cut at %d, then published: %v", n+1, err)
		}
	}
}

func TestCutWhilePulling(t *testing.T) {
	for name, pattern := range map[string]string{"the manifest": "^GET .*/manifests/", "a file": "^GET .*/blobs/", "the tags": "^GET .*/tags/"} {
		s, r := open(t, start(t, cut(pattern)), stacks.Options{})
		publish(t, s, release(t, "v3", nil))
		p, err := s.Pull(t.Context(), r.WithTag(v3))
		if name == "the tags" {
			_, err = s.List(t.Context(), nil)
			p = nil
		}
		if p != nil || err == nil || !strings.Contains(err.Error(), "ended the connection too early") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSlowRegistry(t *testing.T) {
	hang := func(pattern string) middleware {
		return at(pattern, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", manifestType)
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	for name, o := range map[string]stacks.Options{
		"a request":      {Limits: fetch.Limits{Time: 100 * time.Millisecond}},
		"the whole pull": {Timeout: 100 * time.Millisecond},
	} {
		ref := start(t, hang("^GET "))
		w, _ := open(t, ref, stacks.Options{})
		publish(t, w, release(t, "v3", nil))
		s, r := open(t, ref, o)
		before := time.Now()
		_, err := s.Pull(t.Context(), r.WithTag(v3))
		_, listErr := s.List(t.Context(), nil)
		for _, err := range []error{err, listErr} {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "took too long, and was given up") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d := time.Since(before); d > 3*time.Second {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A listing that was given up is an error: half of one would look whole.
func TestListingIsGivenUp(t *testing.T) {
	ref := start(t, at("^GET .*/manifests/", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }))
	s, _ := open(t, ref, stacks.Options{Timeout: 300 * time.Millisecond})
	publish(t, s, release(t, "v3", nil))
	if l, err := s.List(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) || len(l.Warnings) != 0 {
		t.Errorf("%v, %v", err, l.Warnings)
	}
}

// A registry may redirect to where its files are, but not to private hosts that are not trusted.
func TestRedirectedBlobs(t *testing.T) {
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get("Authorization") != "" {
			t.Error("it got the credentials of the registry")
		}
		_, _ = w.Write([]byte("x"))
	}))
	defer inside.Close()
	ref := start(t, basicAuth("user", "hunter22"), at("^GET .*/blobs/", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, inside.URL+"/?signature=secret", http.StatusTemporaryRedirect)
	}))
	o := stacks.Options{Username: "user", Password: "hunter22"}
	s, r := open(t, ref, o)
	publish(t, s, release(t, "v3", archive.Tree{"a.txt": []byte("x")}))
	_, err := s.Pull(t.Context(), r.WithTag(v3))
	if !errors.Is(err, fetch.ErrRefused) || strings.Contains(err.Error(), "secret") || reached.Load() != 0 {
		t.Errorf("%v; reached %d times", err, reached.Load())
	}
	o.Trusted = []string{inside.Listener.Addr().String()}
	s, _ = open(t, ref, o)
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); !errors.Is(err, stacks.ErrDigest) && !strings.Contains(fmt.Sprint(err), "mismatch") || reached.Load() == 0 {
		t.Errorf("trusted: %v; reached %d times", err, reached.Load())
	}
}

// A host that only a document names is not trusted for that.
func TestUntrustedReference(t *testing.T) {
	var c count
	ref := start(t, c.middleware)
	s, r := open(t, ref, stacks.Options{Untrusted: true})
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); !errors.Is(err, fetch.ErrRefused) || c.of(http.MethodGet, http.MethodHead) != 0 {
		t.Errorf("%v, and %v", err, c.n)
	}
	s, _ = open(t, ref, stacks.Options{Untrusted: true, Trusted: []string{r.Host}})
	publish(t, s, release(t, "v3", nil))
}

// A server of tokens at a private address must be trusted too.
func TestTokenServerInside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ref := start(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Www-Authenticate", `Bearer realm="http://`+l.Addr().String()+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	})
	s, r := open(t, ref, stacks.Options{Username: "user", Password: "hunter22"})
	reached := make(chan struct{})
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
			close(reached)
		}
	}()
	_, err = s.Pull(t.Context(), r.WithTag(v3))
	if !errors.Is(err, fetch.ErrRefused) || strings.Contains(err.Error(), "hunter22") {
		t.Error(err)
	}
	select {
	case <-reached:
		t.Error("it was asked for a token")
	default:
	}
}
