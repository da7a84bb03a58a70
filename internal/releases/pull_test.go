package releases_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// What was pulled once is there without the registry, also after a restart.
func TestPull(t *testing.T) {
	reg, dir := start(t, false, nil), t.TempDir()
	want := release(t, "v3", archive.Tree{"empty.txt": {}})
	digest := publish(t, reg.ref, stacks.Options{}, want)
	l := library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
	s := source(t, l, oci(reg.ref))
	if s.String() != reg.ref {
		t.Errorf("%s", s)
	}
	if _, err := l.Get(t.Context(), name(t, "v3"), digest); !errors.Is(err, releases.ErrMissing) {
		t.Errorf("before: %v", err)
	}
	r, d, err := l.Pull(t.Context(), s, name(t, "v3"), "")
	if err != nil || d != digest || !cmp.Equal(r.Files, want.Files) {
		t.Fatalf("%v, %s", err, d)
	}
	reg.server.Close()
	l = library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
	r, d, err = l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), digest)
	if err != nil || d != digest || !cmp.Equal(r.Files, want.Files) || r.Name.Tag() != want.Name.Tag() {
		t.Errorf("from disk: %v, %s", err, d)
	}
	if r, err := l.Get(t.Context(), name(t, "v3"), digest); err != nil || !cmp.Equal(r.Files, want.Files) {
		t.Errorf("from disk: %v", err)
	}
	if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), ""); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("with a digest that only the registry knows: %v", err)
	}
}

// No other user of the machine can read releases that needed a tenant's credentials.
func TestModes(t *testing.T) {
	reg, dir := start(t, false, nil), filepath.Join(t.TempDir(), "cache")
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	l := library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
	if _, _, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), digest); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestPullFromDirectory(t *testing.T) {
	dir := t.TempDir()
	digest := publish(t, dir, stacks.Options{}, release(t, "v3", nil))
	for name, c := range map[string]struct {
		config releases.Config
		source *csv1.Source
		text   string
	}{
		"by its name": {releases.Config{Directories: map[string]string{"ours": dir}}, &csv1.Source{Directory: "ours"}, "directory ours"},
		"the default": {releases.Config{Default: &releases.ConfiguredSource{Reference: dir}}, nil, "the plane's default source"},
	} {
		l := library(t, c.config)
		s := source(t, l, clusterStack(c.source))
		if s.String() != c.text {
			t.Errorf("%s: %s", name, s)
		}
		listing, err := s.List(t.Context(), func(r version.ReleaseName) bool { return r.Version.Major == 3 })
		if err != nil || len(listing.Entries) != 1 || listing.Entries[0].Digest != digest {
			t.Fatalf("%s: %v, %+v", name, err, listing)
		}
		e := listing.Entries[0]
		if _, d, err := l.Pull(t.Context(), s, e.Release, e.Digest); err != nil || d != digest {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Get(t.Context(), e.Release, digest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		e.Release.Version.Major = 4
		_, _, err = l.Pull(t.Context(), s, e.Release, "")
		if !errors.Is(err, stacks.ErrNotFound) || strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "it is not in "+c.text) {
			t.Errorf("%s, which tenants read: %v", name, err)
		}
	}
	l := library(t, releases.Config{Directories: map[string]string{"gone": filepath.Join(dir, "gone")}})
	_, err := source(t, l, clusterStack(&csv1.Source{Directory: "gone"})).List(t.Context(), nil)
	if !errors.Is(err, stacks.ErrNotFound) || err.Error() != "listing directory gone: there is no such directory: not found" {
		t.Errorf("one that is gone: %v", err)
	}
}

// What other tools publish has a digest that the files alone do not give.
func TestForeignArtifact(t *testing.T) {
	reg, want := start(t, false, nil), release(t, "v3", nil)
	publish(t, reg.ref, stacks.Options{}, want)
	var layers []string
	for _, file := range want.Files.Names() {
		layers = append(layers, fmt.Sprintf(`{"size":%d,"mediaType":"text/x-strange","digest":%q,"annotations":{"x":"y","org.opencontainers.image.title":%q}}`,
			len(want.Files[file]), digest.FromBytes(want.Files[file]), file))
	}
	manifest := `{"artifactType":"application/vnd.clusterstack.release", "schemaVersion":2, "layers":[` + strings.Join(layers, ",\n") + `]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+reg.host+"/v2/kaas/stacks/manifests/docker-ferrol-1-27-v3",
		strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	l := library(t, releases.Config{Trusted: []string{reg.host}})
	_, d, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), "")
	if err != nil || d != digest.FromString(manifest).String() {
		t.Fatal(err, d)
	}
	if r, err := l.Get(t.Context(), name(t, "v3"), d); err != nil || !cmp.Equal(r.Files, want.Files) {
		t.Error(err)
	}
}

// What is no release gives an error that says so, and is not kept.
func TestUnsoundRelease(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	publish(t, from, stacks.Options{}, release(t, "v3", nil))
	if err := os.Remove(filepath.Join(from, "docker-ferrol-1-27-v3", "metadata.yaml")); err != nil {
		t.Fatal(err)
	}
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	_, _, err := l.Pull(t.Context(), source(t, l, clusterStack(nil)), name(t, "v3"), "")
	if !errors.Is(err, stacks.ErrInvalid) || len(entries(t, dir)) != 0 {
		t.Errorf("%v, and on disk %v", err, entries(t, dir))
	}
	if _, _, err := l.Pull(t.Context(), source(t, l, clusterStack(nil)), name(t, "v4"), ""); !errors.Is(err, stacks.ErrNotFound) ||
		errors.Is(err, stacks.ErrInvalid) {
		t.Errorf("another: %v", err)
	}
}

// A tag with another content is not taken for the one that was asked for; that is still there.
func TestMovedTag(t *testing.T) {
	reg := start(t, false, nil)
	first := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	c := releases.Config{Dir: t.TempDir(), Trusted: []string{reg.host}}
	l := library(t, c)
	s := source(t, l, oci(reg.ref))
	if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), first); err != nil {
		t.Fatal(err)
	}
	second := publish(t, reg.ref, stacks.Options{}, release(t, "v3", archive.Tree{"more.txt": []byte("x")}))
	if r, err := l.Get(t.Context(), name(t, "v3"), first); err != nil || r.Files["more.txt"] != nil {
		t.Errorf("the first, from disk: %v", err)
	}
	if _, d, err := l.Pull(t.Context(), s, name(t, "v3"), ""); err != nil || d != second {
		t.Errorf("whichever: %v, %s", err, d)
	}
	if _, err := l.Get(t.Context(), name(t, "v3"), first); err != nil {
		t.Errorf("the first, beside the second: %v", err)
	}
	c.Dir = t.TempDir()
	l = library(t, c)
	if r, d, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), first); err != nil || d != first || r.Files["more.txt"] != nil {
		t.Errorf("the first, by its digest: %v, %s", err, d)
	}
	c.Dir = t.TempDir()
	l = library(t, c)
	reg.between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, first) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, _, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), first); !errors.Is(err, stacks.ErrMoved) || len(entries(t, c.Dir)) != 0 {
		t.Errorf("the first, when it is gone: %v, and on disk %v", err, entries(t, c.Dir))
	}
}

// A release is asked for by its name too: under another it is not the same.
func TestWrongName(t *testing.T) {
	reg := start(t, false, nil)
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	l := library(t, releases.Config{Trusted: []string{reg.host}})
	s := source(t, l, oci(reg.ref))
	if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
		t.Fatal(err)
	}
	before := reg.requests.Load()
	_, err := l.Get(t.Context(), name(t, "v4"), digest)
	_, _, pullErr := l.Pull(t.Context(), s, name(t, "v4"), digest)
	for _, err := range []error{err, pullErr} {
		if !errors.Is(err, stacks.ErrInvalid) || errors.Is(err, releases.ErrMissing) || !strings.Contains(err.Error(), "metadata.yaml says version v3, its name v4") {
			t.Error(err)
		}
	}
	if _, err := l.Get(t.Context(), name(t, "v3"), digest); err != nil || reg.requests.Load() != before {
		t.Errorf("then: %v, after %d requests", err, reg.requests.Load()-before)
	}
}

func TestWrongDigest(t *testing.T) {
	dir := t.TempDir()
	l := library(t, releases.Config{Default: &releases.ConfiguredSource{Reference: dir}})
	s := source(t, l, clusterStack(nil))
	for _, digest := range []string{"sha256:../../../etc", "sha512:" + strings.Repeat("0", 64), strings.Repeat("0", 64)} {
		_, err := l.Get(t.Context(), name(t, "v3"), digest)
		_, _, pullErr := l.Pull(t.Context(), s, name(t, "v3"), digest)
		for _, err := range []error{err, pullErr} {
			if err == nil || errors.Is(err, releases.ErrMissing) || !strings.Contains(err.Error(), "is no digest") {
				t.Errorf("%s: %v", digest, err)
			}
		}
	}
}

// A transfer that is cut leaves nothing, and can be tried again at once.
func TestCutTransfer(t *testing.T) {
	for what, path := range map[string]string{"the manifest": "/manifests/", "a file": "/blobs/"} {
		reg, dir := start(t, false, nil), t.TempDir()
		digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", archive.Tree{"large.txt": make([]byte, 1<<20)}))
		l := library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
		s := source(t, l, oci(reg.ref))
		reg.between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, path) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		})
		for range 6 { // more than may be under way at once
			if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err == nil {
				t.Errorf("%s: it was cut and taken", what)
			}
		}
		if left := entries(t, dir); len(left) != 0 {
			t.Errorf("%s: %v is left", what, left)
		}
		reg.between(nil)
		if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
			t.Errorf("%s, then: %v", what, err)
		}
	}
}

// If a release cannot be written to disk, nothing is left of it, and the next try is a new one.
func TestDiskRefuses(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	digest := publish(t, from, stacks.Options{}, release(t, "v3", nil))
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	s := source(t, l, clusterStack(nil))
	if err := errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), ""); err == nil || !strings.Contains(err.Error(), "keeping release docker-ferrol-1-27-v3") {
		t.Error(err)
	}
	if err := os.Remove(dir); err != nil { // it may even be gone
		t.Fatal(err)
	}
	if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	l := library(t, releases.Config{Default: &releases.ConfiguredSource{Reference: dir}})
	digest := publish(t, dir, stacks.Options{}, release(t, "v3", nil))
	_, err := l.Get(ctx, name(t, "v3"), digest)
	_, _, pullErr := l.Pull(ctx, source(t, l, clusterStack(nil)), name(t, "v3"), digest)
	for _, err := range []error{err, pullErr} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
