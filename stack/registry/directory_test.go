package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "some", "where")
	s, ref := open(t, dir, stacks.Options{})
	if _, err := s.List(t.Context(), nil); !errors.Is(err, stacks.ErrNotFound) {
		t.Error(err)
	}
	p := publish(t, s, release(t, "v10", nil))
	publish(t, s, release(t, "v9", nil))
	if again := publish(t, s, release(t, "v10", nil)); !again.Existed || again.Reference != p.Reference || p.Existed {
		t.Errorf("%+v, first %+v", again, p)
	}
	if got, err := archive.ReadDir(filepath.Join(dir, "docker-ferrol-1-27-v10"), archive.DefaultLimits, nil); err != nil || !cmp.Equal(got, files(t, "v10", nil)) {
		t.Errorf("%v", err)
	}
	for _, r := range []stacks.Reference{ref.WithTag("docker-ferrol-1-27-v10"), {Digest: p.Reference.Digest}, p.Reference} {
		if got, err := s.Pull(t.Context(), r); err != nil || got.Digest != p.Reference.Digest || !cmp.Equal(got.Release.Files, files(t, "v10", nil)) {
			t.Errorf("%s: %v", r, err)
		} else if err := stacks.Verify(got.Digest, got.Manifest, got.Release.Files); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
	l, err := s.List(t.Context(), nil)
	if err != nil || len(l.Entries) != 2 || len(l.Warnings) != 0 || l.Entries[1].Digest != p.Reference.Digest || l.Entries[1].Kubernetes != "v1.27.3" ||
		l.Entries[0].Release.Version.Major != 9 {
		t.Errorf("%v, %+v", err, l)
	}
}

// A release has the same digest wherever it is.
func TestDirectoryAndRegistryAgree(t *testing.T) {
	d, _ := open(t, t.TempDir(), stacks.Options{})
	o, _ := open(t, start(t), stacks.Options{})
	r := release(t, "v3", archive.Tree{"more.txt": []byte("x")})
	if a, b := publish(t, d, r), publish(t, o, r); a.Reference.Digest != b.Reference.Digest {
		t.Errorf("%s and %s", a.Reference, b.Reference)
	}
}

// What other tools have published has one digest in their registry, in a directory it was pulled into, and in that
// directory's list.
func TestDirectoryKeepsForeignDigest(t *testing.T) {
	ref, dir := start(t), t.TempDir()
	o, at := open(t, ref, stacks.Options{})
	want := upstream(t, ref, v3, "application/vnd.scs.cluster-stacks.v1", `{"org.opencontainers.image.created":"2024-05-01T00:00:00Z"}`, files(t, "v3", nil))
	pulled, err := o.Pull(t.Context(), at.WithTag(v3))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p, err := stacks.WriteDir(dir, pulled); err != nil || p.Reference.Digest != want {
			t.Errorf("writing: %s, %v, want %s", p.Reference, err, want)
		}
	}
	d, here := open(t, dir, stacks.Options{})
	for _, s := range []stacks.Store{o, d} {
		if l, err := s.List(t.Context(), nil); err != nil || len(l.Entries) != 1 || l.Entries[0].Digest != want {
			t.Errorf("listing: %+v, %v", l, err)
		}
	}
	got, err := d.Pull(t.Context(), here.WithTag(v3))
	if err != nil || got.Digest != want || !cmp.Equal(got.Release.Files, files(t, "v3", nil)) || stacks.Verify(want, got.Manifest, got.Release.Files) != nil {
		t.Errorf("pulling: %v", err)
	}
	if p := publish(t, d, release(t, "v3", nil)); !p.Existed || p.Reference.Digest != want {
		t.Errorf("the same again: %+v", p)
	}
	// A manifest of other files means nothing.
	if err := os.WriteFile(filepath.Join(dir, v3, "more.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := d.List(t.Context(), nil); err != nil || len(l.Entries) != 1 || l.Entries[0].Digest == want {
		t.Errorf("changed: %+v, %v", l, err)
	}
}

func TestDirectoryKeepsReleases(t *testing.T) {
	dir := t.TempDir()
	s, ref := open(t, dir, stacks.Options{})
	first := publish(t, s, release(t, "v3", nil))
	other := release(t, "v3", archive.Tree{"more.txt": []byte("x")})
	if _, err := s.Publish(t.Context(), other); !errors.Is(err, stacks.ErrExists) ||
		!strings.Contains(err.Error(), "is there with another content, "+first.Reference.Digest+"; publish it as a new version") {
		t.Error(err)
	}
	by, _ := open(t, dir, stacks.Options{Overwrite: true})
	second := publish(t, by, other)
	if got, err := s.Pull(t.Context(), ref.WithTag(v3)); err != nil || got.Digest != second.Reference.Digest || second.Existed {
		t.Errorf("overwritten: %v", err)
	}
	if _, err := s.Pull(t.Context(), first.Reference); !errors.Is(err, stacks.ErrMoved) {
		t.Errorf("moved: %v", err)
	}
	if _, err := s.Pull(t.Context(), stacks.Reference{Digest: first.Reference.Digest}); !errors.Is(err, stacks.ErrNotFound) {
		t.Errorf("the old one: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(dir, v3, "metadata.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), other); !errors.Is(err, stacks.ErrExists) || !strings.Contains(err.Error(), "is there, and cannot be read") {
		t.Errorf("damaged: %v", err)
	}
}

// Of many that publish a version at once, one wins, and those with another content are told.
func TestDirectoryRace(t *testing.T) {
	s, ref := open(t, t.TempDir(), stacks.Options{})
	same, other := release(t, "v3", nil), release(t, "v3", archive.Tree{"more.txt": []byte("x")})
	var all sync.WaitGroup
	var won [10]string
	for i := range won {
		all.Go(func() {
			r := same
			if i%2 == 0 {
				r = other
			}
			p, err := s.Publish(t.Context(), r)
			if err != nil && !errors.Is(err, stacks.ErrExists) {
				t.Error(err)
			}
			won[i] = p.Reference.Digest
		})
	}
	all.Wait()
	got, err := s.Pull(t.Context(), ref.WithTag(v3))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range won {
		if d == got.Digest {
			n++
		} else if d != "" {
			t.Errorf("%s was published, and %s is there", d, got.Digest)
		}
	}
	if n != 5 {
		t.Errorf("%d of 5 succeeded", n)
	}
}

func TestHostileDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s, ref := open(t, dir, stacks.Options{})
	good := publish(t, s, release(t, "v1", nil))
	elsewhere, _ := open(t, outside, stacks.Options{})
	publish(t, elsewhere, release(t, "v2", nil))
	for _, err := range []error{
		os.Symlink(filepath.Join(outside, "docker-ferrol-1-27-v2"), filepath.Join(dir, "docker-ferrol-1-27-v2")),
		os.WriteFile(filepath.Join(dir, "docker-ferrol-1-27-v4"), nil, 0o600),
		os.Mkdir(filepath.Join(dir, "docker-ferrol-1-27-v5"), 0o700),
		os.Mkdir(filepath.Join(dir, "docker-ferrol-1-27-v0-sha.abc"), 0o700),
		os.Mkdir(filepath.Join(dir, "junk"), 0o700),
		os.Mkdir(filepath.Join(dir, ".hidden"), 0o700),
		archive.WriteDir(filepath.Join(dir, "docker-ferrol-1-27-v6"), files(t, "v6", archive.Tree{"sub/file": nil})), // as somebody unpacks an archive
		archive.WriteDir(filepath.Join(dir, "docker-ferrol-1-27-v7"), files(t, "v8", nil)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.List(t.Context(), nil)
	if err != nil || len(l.Entries) != 2 || l.Entries[0].Digest != good.Reference.Digest || l.Entries[1].Release.Version.Major != 6 {
		t.Errorf("%v, %+v", err, l.Entries)
	}
	want := []string{
		`"docker-ferrol-1-27-v2" is left out: it is no directory`,
		`"docker-ferrol-1-27-v4" is left out: it is no directory`,
		`directory "docker-ferrol-1-27-v0-sha.abc" is left out: the name of this release is spelled docker-ferrol-1-27-v0-sha-abc`,
		`directory is left out: release "junk" is not of the form provider-name-1-36-v1`,
		`docker-ferrol-1-27-v5 is left out: release docker-ferrol-1-27-v5: metadata.yaml is missing, so this is no release`,
	}
	texts := warningTexts(l.Warnings)
	if len(texts) != 6 || !strings.HasPrefix(texts[5],
		"docker-ferrol-1-27-v7 is left out: release docker-ferrol-1-27-v7: metadata.yaml says version v8, its name v7") || cmp.Diff(want, texts[:5]) != "" {
		t.Error(cmp.Diff(want, texts))
	}
	kinds := []stacks.WarningKind{
		stacks.NotDirectory, stacks.NotDirectory, stacks.Misspelled, stacks.NotRelease, stacks.Unreadable, stacks.Unreadable,
	}
	if d := cmp.Diff(kinds, warningKinds(l.Warnings)); d != "" {
		t.Error(d)
	}
	if _, err := s.Pull(t.Context(), ref.WithTag("docker-ferrol-1-27-v2")); err == nil || !strings.Contains(err.Error(), "is no directory") {
		t.Errorf("a link: %v", err)
	}
	if _, err := s.Publish(t.Context(), release(t, "v2", nil)); !errors.Is(err, stacks.ErrExists) {
		t.Errorf("onto a link: %v", err)
	}
}
