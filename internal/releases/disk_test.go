package releases_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

// edit returns a function that changes a file of a release on disk.
func edit(file string, by func([]byte) []byte) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, by(b), 0o600)
	}
}

func flip(b []byte) []byte { b[len(b)/2] ^= 1; return b }

var damages = map[string]func(dir string) error{
	"a bit of a file":      edit("files/metadata.yaml", flip),
	"a bit of an archive":  edit("files/docker-ferrol-1-27-cluster-class-v3.tgz", flip),
	"a bit of a manifest":  edit("manifest.json", flip),
	"a truncated file":     edit("files/metadata.yaml", func(b []byte) []byte { return b[:len(b)-1] }),
	"an empty file":        edit("files/metadata.yaml", func([]byte) []byte { return nil }),
	"a truncated manifest": edit("manifest.json", func(b []byte) []byte { return b[:10] }),
	"a longer manifest":    edit("manifest.json", func(b []byte) []byte { return append(b, '\n') }),
	"a huge file":          func(dir string) error { return os.Truncate(filepath.Join(dir, "files/metadata.yaml"), 1<<40) },
	"a missing file":       func(dir string) error { return os.Remove(filepath.Join(dir, "files/metadata.yaml")) },
	"no manifest":          func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) },
	"no files":             func(dir string) error { return os.RemoveAll(filepath.Join(dir, "files")) },
	"a file more":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "files", "more"), nil, 0o600) },
	"a file beside":        func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o600) },
	"another's name": func(dir string) error {
		return os.Rename(filepath.Join(dir, "files/metadata.yaml"), filepath.Join(dir, "files/other.yaml"))
	},
	"a link": func(dir string) error {
		file := filepath.Join(dir, "files/metadata.yaml")
		return errors.Join(os.Rename(file, filepath.Join(dir, "../../metadata.yaml")), os.Symlink("../../../metadata.yaml", file))
	},
	"a pipe": func(dir string) error {
		file := filepath.Join(dir, "files/metadata.yaml")
		return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600))
	},
	"a file instead": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	"nothing in it":  func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
}

// Whatever happens to a release on disk, it is not given away, and the next Pull repairs it.
func TestDamage(t *testing.T) {
	want := release(t, "v3", nil)
	reg := start(t, false, nil)
	digest := publish(t, reg.ref, stacks.Options{}, want)
	for what, damage := range damages {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			l := library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
			s := source(t, l, oci(reg.ref))
			for _, look := range []bool{true, false} {
				if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
					t.Fatal(err)
				}
				if err := damage(place(dir, digest)); err != nil {
					t.Fatal(err)
				}
				before := reg.manifests.Load()
				if look {
					if r, err := l.Get(t.Context(), name(t, "v3"), digest); r != nil || !errors.Is(err, releases.ErrMissing) || errors.Is(err, stacks.ErrDigest) {
						t.Errorf("%v", err)
					}
					if left := entries(t, dir); len(left) != 0 {
						t.Errorf("%v is left", left)
					}
				}
				r, d, err := l.Pull(t.Context(), s, name(t, "v3"), digest)
				if err != nil || d != digest || !cmp.Equal(r.Files, want.Files) || reg.manifests.Load() != before+1 {
					t.Errorf("repaired: %v, after %d transfers", err, reg.manifests.Load()-before)
				}
				if r, err := l.Get(t.Context(), name(t, "v3"), digest); err != nil || !cmp.Equal(r.Files, want.Files) {
					t.Errorf("then: %v", err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Every single bit counts.
func TestEveryBit(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	digest := publish(t, from, stacks.Options{}, release(t, "v3", nil))
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	s := source(t, l, clusterStack(nil))
	for _, file := range []string{"manifest.json", "files/metadata.yaml"} {
		for i := 0; ; i += 97 { // of these files, about a hundred
			if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
				t.Fatal(err)
			}
			over := false
			if err := edit(file, func(b []byte) []byte {
				if over = i >= 8*len(b); !over {
					b[i/8] ^= 1 << (i % 8)
				}
				return b
			})(place(dir, digest)); err != nil {
				t.Fatal(err)
			}
			if over {
				break
			}
			if _, err := l.Get(t.Context(), name(t, "v3"), digest); !errors.Is(err, releases.ErrMissing) {
				t.Errorf("bit %d of %s: %v", i, file, err)
			}
		}
	}
}

// Many that find the same damage do not remove what one of them has repaired.
func TestDamageRace(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	digest := publish(t, from, stacks.Options{}, release(t, "v3", nil))
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	s := source(t, l, clusterStack(nil))
	for range 20 {
		if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
			t.Fatal(err)
		}
		if err := damages["a bit of a file"](place(dir, digest)); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if i%2 == 0 {
					_, _ = l.Get(t.Context(), name(t, "v3"), digest)
					return
				}
				if _, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil {
					t.Error(err)
				}
				if _, err := l.Get(t.Context(), name(t, "v3"), digest); err != nil {
					t.Errorf("after a pull: %v", err)
				}
			})
		}
		all.Wait()
	}
}

func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveUnused(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	s := source(t, l, clusterStack(nil))
	digests := map[string]string{}
	for _, v := range []string{"v1", "v2", "v3", "v4", "v5"} {
		digests[v] = publish(t, from, stacks.Options{}, release(t, v, archive.Tree{"of": []byte(v)}))
		if _, _, err := l.Pull(t.Context(), s, name(t, v), digests[v]); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{".tmp-old", ".tmp-new", "sha256-other", "somebody's"} {
		if err := archive.WriteDir(filepath.Join(dir, other), archive.Tree{"files/a": nil}); err != nil {
			t.Fatal(err)
		}
		age(t, filepath.Join(dir, other), 2*time.Hour)
	}
	for _, v := range []string{"v1", "v2", "v4", "v5"} { // v3 was pulled just now
		age(t, place(dir, digests[v]), 2*time.Hour)
	}
	age(t, filepath.Join(dir, ".tmp-new"), time.Minute)
	if _, _, err := l.Pull(t.Context(), s, name(t, "v4"), digests["v4"]); err != nil { // known already
		t.Fatal(err)
	}
	if _, _, err := l.Pull(t.Context(), s, name(t, "v5"), ""); err != nil { // not known, but the same
		t.Fatal(err)
	}
	if err := l.RemoveUnused(map[string]bool{digests["v2"]: true, digests["v1"]: false}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, v := range []string{"v2", "v3", "v4", "v5"} {
		want = append(want, filepath.Base(place(dir, digests[v])))
		if _, err := l.Get(t.Context(), name(t, v), digests[v]); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
	want = append(want, ".tmp-new", "sha256-other", "somebody's")
	slices.Sort(want)
	if d := cmp.Diff(want, entries(t, dir)); d != "" {
		t.Error(d)
	}
	if _, err := l.Get(t.Context(), name(t, "v1"), digests["v1"]); !errors.Is(err, releases.ErrMissing) {
		t.Errorf("v1: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.RemoveUnused(nil); err != nil {
		t.Errorf("without a directory: %v", err)
	}
}

// A process that was killed while it wrote leaves something that is no release.
func TestCrashLeftovers(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	digest := publish(t, from, stacks.Options{}, release(t, "v3", nil))
	hidden := filepath.Join(dir, ".tmp-123")
	if err := archive.WriteDir(hidden, archive.Tree{"files/metadata.yaml": []byte("half")}); err != nil {
		t.Fatal(err)
	}
	l := library(t, releases.Config{Dir: dir, Default: &releases.ConfiguredSource{Reference: from}})
	if _, _, err := l.Pull(t.Context(), source(t, l, clusterStack(nil)), name(t, "v3"), digest); err != nil {
		t.Error(err)
	}
	age(t, hidden, 2*time.Hour)
	if err := l.RemoveUnused(map[string]bool{digest: true}); err != nil {
		t.Error(err)
	}
	if left := entries(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], "sha256-") {
		t.Errorf("%v", left)
	}
}
