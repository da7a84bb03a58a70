package releases_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

// eventually waits until something has happened.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-limit:
			t.Fatalf("%s: this did not happen", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// gate holds back files until it is opened, and counts the requests that wait.
type gate struct {
	open    chan struct{}
	waiting atomic.Int32
	most    atomic.Int32
}

func (g *gate) middleware(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
		n := g.waiting.Add(1)
		for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
		}
		defer g.waiting.Add(-1)
		select {
		case <-g.open:
		case <-r.Context().Done():
			return
		}
	}
	next.ServeHTTP(w, r)
}

// Many callers that want the same at once make one download; later ones find it on disk.
func TestOneTransfer(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	reg := start(t, false, nil)
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	reg.between(g.middleware)
	l := library(t, releases.Config{Trusted: []string{reg.host}})
	var all sync.WaitGroup
	var begun atomic.Int32
	for range 20 {
		all.Go(func() {
			s := source(t, l, oci(reg.ref)) // each its own, as reconcilers have
			begun.Add(1)
			if r, d, err := l.Pull(t.Context(), s, name(t, "v3"), digest); err != nil || d != digest || r == nil {
				t.Errorf("%v, %s", err, d)
			}
		})
	}
	eventually(t, "all ask", func() bool { return begun.Load() == 20 && g.waiting.Load() > 0 })
	close(g.open)
	all.Wait()
	if n := reg.manifests.Load(); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// A caller that goes away while it downloads for others does not make theirs fail.
func TestLeaderLeaves(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	reg := start(t, false, nil)
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	reg.between(g.middleware)
	l := library(t, releases.Config{Trusted: []string{reg.host}})
	s := source(t, l, oci(reg.ref))
	ctx, leave := context.WithCancel(t.Context())
	first, others := make(chan error, 1), make(chan error, 5)
	go func() {
		_, _, err := l.Pull(ctx, s, name(t, "v3"), digest)
		first <- err
	}()
	eventually(t, "the first asks", func() bool { return g.waiting.Load() == 1 })
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, _, err := l.Pull(short, s, name(t, "v3"), digest); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who waits with a deadline: %v", err)
	}
	for range cap(others) {
		go func() {
			_, _, err := l.Pull(t.Context(), s, name(t, "v3"), digest)
			others <- err
		}()
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	close(g.open)
	for range cap(others) {
		if err := <-others; err != nil {
			t.Errorf("another: %v", err)
		}
	}
}

// There are at most four downloads at once. Whoever waits for a slot does so only until its context ends.
func TestFewDownloads(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	reg := start(t, false, nil)
	versions := []string{"v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"}
	for _, v := range versions {
		publish(t, reg.ref, stacks.Options{}, release(t, v, archive.Tree{"of": []byte(v)}))
	}
	reg.between(g.middleware)
	l := library(t, releases.Config{Trusted: []string{reg.host}})
	var all sync.WaitGroup
	for _, v := range versions[:8] {
		all.Go(func() {
			if _, _, err := l.Pull(t.Context(), source(t, l, ociOf(v, reg.ref)), name(t, v), ""); err != nil {
				t.Errorf("%s: %v", v, err)
			}
		})
	}
	eventually(t, "four ask", func() bool { return g.waiting.Load() == 4 })
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, _, err := l.Pull(short, source(t, l, ociOf("v9", reg.ref)), name(t, "v9"), ""); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "waiting for other downloads") {
		t.Errorf("v9: %v", err)
	}
	close(g.open)
	all.Wait()
	if n := g.most.Load(); n != 4 {
		t.Errorf("%d at once", n)
	}
}

// Callers with other credentials share neither the releases nor the errors of others.
func TestOthersCredentials(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	reg := start(t, false, nil)
	digest := publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	reg.between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if _, p, _ := r.BasicAuth(); p != "hunter22" {
			w.Header().Set("Www-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.middleware(w, r, next)
	})
	right, wrong := secret(map[string]string{"username": "u", "password": "hunter22"}), secret(map[string]string{"username": "u", "password": "wrong-one"})
	wrong.Namespace = "other"
	l := library(t, releases.Config{Trusted: []string{reg.host}}, right, wrong)
	cs := ociWithSecret(reg.ref)
	done := make(chan error, 1)
	go func() {
		_, _, err := l.Pull(t.Context(), source(t, l, cs), name(t, "v3"), digest)
		done <- err
	}()
	eventually(t, "the right one asks", func() bool { return g.waiting.Load() == 1 })
	foreign := cs.DeepCopy()
	foreign.Namespace = "other"
	ctx, end := context.WithTimeout(t.Context(), 10*time.Second) // it would wait for the right one
	defer end()
	if _, _, err := l.Pull(ctx, source(t, l, foreign), name(t, "v3"), ""); !errors.Is(err, stacks.ErrCredentials) {
		t.Errorf("the wrong one: %v", err)
	}
	if _, _, err := l.Pull(ctx, source(t, l, foreign), name(t, "v3"), digest); !errors.Is(err, stacks.ErrCredentials) {
		t.Errorf("the wrong one, with the digest: %v", err)
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Errorf("the right one: %v", err)
	}
}
