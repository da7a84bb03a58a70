package releases_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// A namespace whose downloads are slow has two of them at once; others are not held up.
func TestSlowDownloadsOfOneNamespace(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	slow, fast := start(t, false, nil), start(t, false, nil)
	for _, v := range []string{"v1", "v2", "v3"} {
		for _, reg := range []*site{slow, fast} {
			publish(t, reg.ref, stacks.Options{}, release(t, v, archive.Tree{"of": []byte(v + reg.host)}))
		}
	}
	slow.between(g.middleware)
	l := library(t, releases.Config{Trusted: []string{slow.host, fast.host}})
	var all sync.WaitGroup
	for _, v := range []string{"v1", "v2"} {
		all.Go(func() {
			if _, _, err := l.Pull(t.Context(), source(t, l, ociOf("a", slow.ref)), name(t, v), ""); err != nil {
				t.Errorf("%s: %v", v, err)
			}
		})
	}
	eventually(t, "two ask", func() bool { return g.waiting.Load() == 2 })
	if _, _, err := l.Pull(t.Context(), source(t, l, ociOf("a", fast.ref)), name(t, "v3"), ""); !errors.Is(err, fairness.ErrBusy) ||
		!strings.Contains(err.Error(), "at most 2 at once") {
		t.Errorf("the third of the namespace: %v", err)
	}
	if _, _, err := l.Pull(t.Context(), source(t, l, ociOf("b", fast.ref)), name(t, "v3"), ""); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if _, err := source(t, l, ociOf("a", fast.ref)).List(t.Context(), every); err != nil {
		t.Errorf("to list is another thing: %v", err)
	}
	close(g.open)
	all.Wait()
	if _, _, err := l.Pull(t.Context(), source(t, l, ociOf("a", slow.ref)), name(t, "v3"), ""); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func every(version.ReleaseName) bool { return true }

// The same holds for sources that are slow to list. The plane's own belong to no namespace.
func TestSlowListsOfOneNamespace(t *testing.T) {
	open, waiting := make(chan struct{}), atomic.Int32{}
	reg := start(t, false, nil)
	publish(t, reg.ref, stacks.Options{}, release(t, "v1", nil))
	reg.between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/tags/") && waiting.Add(1) <= 2 {
			<-open
		}
		next.ServeHTTP(w, r)
	})
	l := library(t, releases.Config{Trusted: []string{reg.host}, Default: &releases.ConfiguredSource{Reference: reg.ref}})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if _, err := source(t, l, ociOf("a", reg.ref)).List(t.Context(), every); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "two ask", func() bool { return waiting.Load() == 2 })
	if _, err := source(t, l, ociOf("a", reg.ref)).List(t.Context(), every); !errors.Is(err, fairness.ErrBusy) {
		t.Errorf("the third of the namespace: %v", err)
	}
	if _, err := source(t, l, ociOf("b", reg.ref)).List(t.Context(), every); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	own := clusterStack(nil)
	own.Namespace = "a"
	if _, err := source(t, l, own).List(t.Context(), every); err != nil {
		t.Errorf("the plane's own: %v", err)
	}
	close(open)
	all.Wait()
	if _, err := source(t, l, ociOf("a", reg.ref)).List(t.Context(), every); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
