package world

import (
	"context"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// silence is which clusters do not answer, and who waits for them. The zero value lets all answer.
type silence struct {
	mu        sync.Mutex
	is        func(types.NamespacedName) bool
	changed   chan struct{} // closes when other clusters are silent
	now, ever int
}

// SetSilent chooses the clusters that take connections and requests, and never answer; nil lets all answer again, also
// those who wait already.
func (w *World) SetSilent(is func(types.NamespacedName) bool) {
	s := &w.silent
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
	}
	s.is, s.changed = is, make(chan struct{})
}

// Waiting is how many wait for silent clusters now, and how many ever have.
func (w *World) Waiting() (now, ever int) {
	w.silent.mu.Lock()
	defer w.silent.mu.Unlock()
	return w.silent.now, w.silent.ever
}

func (s *silence) has(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is != nil && s.is(name)
}

// wait returns once the cluster is not silent, or ctx ends.
func (s *silence) wait(ctx context.Context, name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.is != nil && s.is(name) && ctx.Err() == nil {
		changed := s.changed
		s.now, s.ever = s.now+1, s.ever+1
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.now--
	}
}

// awaitClose returns a context that ends when the client of a handshake gives up. The client sends nothing before it has
// an answer, so what can be read here is only the end; the handshake cannot go on afterwards.
func awaitClose(ctx context.Context, c net.Conn) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	_ = c.SetReadDeadline(time.Time{}) // of a connection that is closed already there is nothing to wait for
	go func() {
		defer cancel()
		_, _ = c.Read(make([]byte, 1))
	}()
	return ctx
}
