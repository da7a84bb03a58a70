// Package fairness keeps one namespace, with however many slow operations, from holding up all others.
package fairness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy says that a namespace has no free slot: its other operations are slow.
var ErrBusy = errors.New("others of the namespace are under way")

// maxWait is how long Acquire waits for a slot. Whoever waits holds a worker that other namespaces need.
const maxWait = time.Second

// Limiter limits how many operations of each namespace run at once. Its methods may be called concurrently.
type Limiter struct {
	PerNamespace int // slots of each namespace
	MaxWaiting   int // how many of a namespace may wait for a slot; 0 means any number

	mu          sync.Mutex
	byNamespace map[string]*namespaceSlots
}

// namespaceSlots are the slots of one namespace. They are kept as long as somebody uses them.
type namespaceSlots struct {
	slots chan struct{}
	users int // those that have a slot, or wait for one
}

// Acquire waits for a slot of the namespace, but not for long. Whoever has one must call done. The empty
// namespace has no limit.
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
		// Only the caller cancels; a deadline may be ours, which means busy.
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, t.busyError()
	}
}

func (t *Limiter) busyError() error {
	return fmt.Errorf("%w: at most %d at once, and this one's turn comes", ErrBusy, t.PerNamespace)
}

// enter counts a user of the namespace, or returns nil if too many of it wait.
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

// leave uncounts a user, and forgets the namespace with its last one, so that the map does not grow for ever.
func (t *Limiter) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byNamespace[namespace].users--; t.byNamespace[namespace].users == 0 {
		delete(t.byNamespace, namespace)
	}
}
