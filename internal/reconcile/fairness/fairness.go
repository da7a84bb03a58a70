// Package fairness keeps one namespace, with as many slow things as it likes, from holding everything up.
package fairness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy is somebody whose turn it was not: others of the same namespace are slow.
var ErrBusy = errors.New("others of the namespace are under way")

// maxWait is how long somebody waits for its turn. Whoever waits holds a worker that other namespaces need.
const maxWait = time.Second

// Limiter has some turns for each namespace. Its method may be called concurrently.
type Limiter struct {
	PerNamespace int // for each namespace
	MaxWaiting   int // how many of a namespace may wait for one; 0: as many as come

	mu          sync.Mutex
	byNamespace map[string]*namespaceSlots
}

// namespaceSlots is that of one namespace, as long as anybody of it is here.
type namespaceSlots struct {
	slots chan struct{}
	users int // those that have one, or wait for it
}

// Acquire waits for a turn of the namespace, but not for long. Whoever has it must call done. What belongs to no
// namespace needs none.
func (t *Limiter) Acquire(ctx context.Context, namespace string) (done func(), err error) {
	if namespace == "" {
		return func() {}, nil
	}
	mine := t.enter(namespace)
	if mine == nil {
		return nil, t.busyError()
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case mine.slots <- struct{}{}:
		return func() { <-mine.slots; t.leave(namespace) }, nil
	case <-ctx.Done():
		t.leave(namespace)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, t.busyError()
	}
}

func (t *Limiter) busyError() error {
	return fmt.Errorf("%w: at most %d at once, and this one's turn comes", ErrBusy, t.PerNamespace)
}

// enter is nil if too many of the namespace wait.
func (t *Limiter) enter(namespace string) *namespaceSlots {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.byNamespace[namespace]
	if mine == nil {
		mine = &namespaceSlots{slots: make(chan struct{}, t.PerNamespace)}
		if t.byNamespace == nil {
			t.byNamespace = map[string]*namespaceSlots{}
		}
		t.byNamespace[namespace] = mine
	}
	if t.MaxWaiting > 0 && mine.users >= t.PerNamespace+t.MaxWaiting {
		return nil
	}
	mine.users++
	return mine
}

func (t *Limiter) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byNamespace[namespace].users--; t.byNamespace[namespace].users == 0 {
		delete(t.byNamespace, namespace)
	}
}
