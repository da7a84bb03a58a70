package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	stacks "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// pages makes a registry list so many tags at once.
func pages(size int, asked *atomic.Int32) middleware {
	return at("^GET .*/tags/list$", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		asked.Add(1)
		last := r.URL.Query().Get("last")
		r.URL.RawQuery = ""
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		var all, page struct {
			Tags []string `json:"tags"`
		}
		_ = json.Unmarshal(rec.Body.Bytes(), &all)
		for _, tag := range all.Tags {
			if tag > last && len(page.Tags) < size {
				page.Tags = append(page.Tags, tag)
			}
		}
		if n := len(page.Tags); n > 0 && page.Tags[n-1] != all.Tags[len(all.Tags)-1] {
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=%s&n=%d>; rel="next"`, r.URL.Path, page.Tags[n-1], size))
		}
		_ = json.NewEncoder(w).Encode(page)
	})
}

func TestList(t *testing.T) {
	var asked atomic.Int32
	ref := start(t, pages(2, &asked))
	s, _ := open(t, ref, stacks.Options{})
	digests := map[string]string{}
	for _, v := range []string{"v10", "v9", "v0-sha.abc1234"} {
		digests[v] = publish(t, s, release(t, v, nil)).Reference.Digest
	}
	const kind = "application/vnd.clusterstack.release"
	bare := upstream(t, ref, "docker-ferrol-1-28-v1", kind, `{}`, nil)
	liar := upstream(t, ref, "docker-ferrol-1-28-v2", kind, `{"kubernetesVersion":"v1.99.0"}`, nil)
	evil := upstream(t, ref, "docker-ferrol-1-28-v3", kind, `{"kubernetesVersion":"\u001b[31m"}`, nil)
	putManifest(t, ref, "docker-ferrol-1-28-v4", strings.Replace(manifest(), "scs.cluster-stacks", "cncf.helm", 1))
	putManifest(t, ref, "latest", manifest())
	putManifest(t, ref, "docker-ferrol-1-27-v0-sha.def5678", manifest())
	putManifest(t, ref, "sha256-"+strings.Repeat("a", 64)+".sig", manifest())

	got, err := s.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(name, kubernetes, digest string) stacks.Entry {
		return stacks.Entry{Release: releaseName(t, name), Kubernetes: kubernetes, Digest: digest}
	}
	entries := []stacks.Entry{
		entry("docker-ferrol-1-27-v0-sha-abc1234", "v1.27.3", digests["v0-sha.abc1234"]),
		entry("docker-ferrol-1-27-v9", "v1.27.3", digests["v9"]),
		entry("docker-ferrol-1-27-v10", "v1.27.3", digests["v10"]),
		entry("docker-ferrol-1-28-v1", "1.28", bare),
		entry("docker-ferrol-1-28-v2", "1.28", liar),
		entry("docker-ferrol-1-28-v3", "1.28", evil),
	}
	warnings := []string{
		`tag "docker-ferrol-1-27-v0-sha.def5678" is left out: the name of this release is spelled docker-ferrol-1-27-v0-sha-def5678`,
		`tag is left out: release "latest" is not of the form provider-name-1-36-v1`,
		`docker-ferrol-1-28-v2: its manifest says that it is for Kubernetes "v1.99.0": its name says otherwise`,
		`docker-ferrol-1-28-v3: its manifest says that it is for Kubernetes "\x1b[31m": version "\x1b[31m" of Kubernetes is not of the form 1.36 or v1.36.3`,
		`docker-ferrol-1-28-v4 is left out: this is no release of a cluster stack: its artifact type is "application/vnd.cncf.helm.v1", not application/vnd.scs.cluster-stacks.v1`,
	}
	kinds := []stacks.WarningKind{stacks.Misspelled, stacks.NotRelease, stacks.InvalidKubernetes, stacks.InvalidKubernetes, stacks.Unreadable}
	if d := cmp.Diff(entries, got.Entries) + cmp.Diff(warnings, warningTexts(got.Warnings)) + cmp.Diff(kinds, warningKinds(got.Warnings)); d != "" {
		t.Error(d)
	}
	if w := got.Warnings[4]; w.Name != "docker-ferrol-1-28-v4" || w.Release != releaseName(t, "docker-ferrol-1-28-v4") || w.Err == nil {
		t.Errorf("%+v", w)
	}
	if asked.Load() != 5 {
		t.Errorf("ten tags on %d pages, want 5", asked.Load())
	}
	only, err := s.List(t.Context(), func(r version.ReleaseName) bool { return r.Kubernetes.Minor == 28 })
	if err != nil || len(only.Entries) != 3 {
		t.Errorf("%v, %+v", err, only)
	}
}

// What is not asked for is not read.
func TestListReadsOnlyWhatIsAskedFor(t *testing.T) {
	var c count
	s, _ := open(t, start(t, c.middleware), stacks.Options{})
	for i := range 6 {
		publish(t, s, release(t, fmt.Sprintf("v%d", i+1), nil))
	}
	before := c.of(http.MethodGet)
	l, err := s.List(t.Context(), func(r version.ReleaseName) bool { return r.Version.Major == 4 })
	if n := c.of(http.MethodGet) - before; err != nil || len(l.Entries) != 1 || n != 2 {
		t.Errorf("%v, %d entries, %d requests", err, len(l.Entries), n)
	}
}

func TestHostileListings(t *testing.T) {
	var n atomic.Int32
	page := func(link string, tags func(page int32) []string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			i := n.Add(1)
			w.Header().Set("Link", "<"+strings.ReplaceAll(link, "PAGE", fmt.Sprint(i))+`>; rel="next"`)
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags(i)})
		}
	}
	one := func(i int32) []string { return []string{fmt.Sprintf("t%d", i)} }
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
		most    int32 // pages
	}{
		"pages for ever": {page("/v2/kaas/stacks/tags/list?last=PAGE", one), "lists its tags on more than 100 pages", 100},
		"empty for ever": {page("/v2/kaas/stacks/tags/list?last=PAGE", func(int32) []string { return nil }), "lists its tags on more than 100 pages", 100},
		"a circle":       {page("/v2/kaas/stacks/tags/list?last=x", func(int32) []string { return []string{"a", "b"} }), "lists the same tags again and again", 2},
		"too many tags": {page("/v2/kaas/stacks/tags/list?last=PAGE", func(p int32) []string {
			var tags []string
			for i := range 2000 {
				tags = append(tags, fmt.Sprintf("t%d-%d", p, i))
			}
			return tags
		}), "lists more than 10000 tags", 6},
		"elsewhere": {page("https://169.254.169.254/latest?secret", one), "not the same origin", 1},
		"a page too large": {func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			_, _ = w.Write([]byte(`{"tags":["`))
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "failed to decode response", 1},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { n.Add(1); _, _ = w.Write([]byte("<html>")) }, "failed to decode response", 1},
	} {
		t.Run(name, func(t *testing.T) {
			n.Store(0)
			s, _ := open(t, start(t, at("/tags/list$", func(w http.ResponseWriter, r *http.Request, _ http.Handler) { c.handler(w, r) })), stacks.Options{})
			l, err := s.List(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || len(l.Entries)+len(l.Warnings) != 0 ||
				n.Load() > c.most {
				t.Errorf("%v after %d pages, want %s after %d", err, n.Load(), c.want, c.most)
			}
		})
	}
}

// A release that cannot be read is a warning, and the others are listed.
func TestListWithDamage(t *testing.T) {
	s, _ := open(t, start(t, change("^GET .*/manifests/docker-ferrol-1-27-v2$", func(b []byte) []byte { b[10] ^= 1; return b })), stacks.Options{})
	publish(t, s, release(t, "v1", nil))
	publish(t, s, release(t, "v2", nil))
	l, err := s.List(t.Context(), nil)
	if err != nil || len(l.Entries) != 1 || len(l.Warnings) != 1 ||
		!strings.HasPrefix(l.Warnings[0].String(), "docker-ferrol-1-27-v2 is left out: manifest: content does not have its digest: sha256:") {
		t.Errorf("%v, %+v", err, l)
	}
	if errors.Is(err, stacks.ErrDigest) {
		t.Error("it is not an error of the listing")
	}
}
