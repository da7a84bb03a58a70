package releases_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

// With a disk that is nearly full nothing is downloaded; releases on disk are served.
func TestPullWithAFullDisk(t *testing.T) {
	reg, dir := start(t, false, nil), filepath.Join(t.TempDir(), "cache")
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v1", nil))
	publish(t, reg.ref, stacks.Options{}, release(t, "v2", nil))
	l := library(t, releases.Config{Dir: dir, Trusted: []string{reg.host}})
	s := source(t, l, oci(reg.ref))
	if _, _, err := l.Pull(t.Context(), s, name(t, "v1"), ""); err != nil {
		t.Fatal(err)
	}
	l.SetFreeSpace(1<<30 - 1)
	before := reg.requests.Load()
	_, _, err := l.Pull(t.Context(), s, name(t, "v2"), "")
	if err == nil || !strings.Contains(err.Error(), "the disk of the plane is nearly full") || strings.Contains(err.Error(), dir) {
		t.Errorf("what is not there: %v", err)
	}
	if _, _, err := l.Pull(t.Context(), s, name(t, "v1"), digest); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if n := reg.requests.Load() - before; n != 0 {
		t.Errorf("%d requests in vain", n)
	}
	l.SetFreeSpace(1 << 30) // but not enough for the release
	if _, _, err := l.Pull(t.Context(), s, name(t, "v2"), ""); err == nil || !strings.Contains(err.Error(), "nearly full") || reg.requests.Load() == before {
		t.Errorf("with little room: %v", err)
	}
	l.SetFreeSpace(2 << 30)
	if _, _, err := l.Pull(t.Context(), s, name(t, "v2"), ""); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// A namespace that has used up its quota waits; others, the plane's own sources, and releases on disk do not.
func TestShareOfOneNamespace(t *testing.T) {
	reg := start(t, false, nil)
	digests := map[string]string{}
	for _, v := range []string{"v1", "v2", "v3"} {
		digests[v] = publish(t, reg.ref, stacks.Options{}, release(t, v, nil))
	}
	l := library(t, releases.Config{Trusted: []string{reg.host}, Default: &releases.ConfiguredSource{Reference: reg.ref}})
	l.SetBytesPerHour(1)
	own := clusterStack(nil)
	own.Namespace = "a"
	a, b, plane := source(t, l, ociOf("a", reg.ref)), source(t, l, ociOf("b", reg.ref)), source(t, l, own)
	if _, _, err := l.Pull(t.Context(), a, name(t, "v1"), ""); err != nil {
		t.Fatal(err)
	}
	before := reg.requests.Load()
	_, _, err := l.Pull(t.Context(), a, name(t, "v2"), "")
	if err == nil || errors.Is(err, fairness.ErrBusy) || !strings.Contains(err.Error(), "this namespace has downloaded 1 GiB") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("too much: %v", err)
	}
	if n := reg.requests.Load() - before; n != 0 {
		t.Errorf("%d requests in vain", n)
	}
	if _, _, err := l.Pull(t.Context(), a, name(t, "v1"), digests["v1"]); err != nil {
		t.Errorf("what is there: %v", err)
	}
	for range 2 {
		if _, _, err := l.Pull(t.Context(), plane, name(t, "v2"), ""); err != nil {
			t.Errorf("the plane's own: %v", err)
		}
	}
	if _, _, err := l.Pull(t.Context(), b, name(t, "v3"), ""); err != nil {
		t.Errorf("another namespace: %v", err)
	}
}
