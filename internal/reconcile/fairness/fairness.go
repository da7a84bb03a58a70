// Package fairness keeps one namespace, or one cluster, with however many slow operations, from holding up all others.
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
	Total        int // slots of all namespaces together; 0 means any number

	once  sync.Once
	slots Slots[string]
}

// Acquire waits for a slot of the namespace, but not for long: then the error is ErrBusy. For a slot of all namespaces
// together it waits until ctx ends: then the error is ErrTotalBusy. Whoever has a slot must call done. The empty
// namespace has no limit of its own.
func (t *Limiter) Acquire(ctx context.Context, namespace string) (done func(), err error) {
	t.once.Do(func() {
		s := &t.slots
		s.PerKey, s.Wait, s.MaxWaiting, s.Total = t.PerNamespace, maxWait, t.MaxWaiting, t.Total
	})
	done, err = t.slots.Acquire(ctx, namespace)
	if errors.Is(err, ErrKeyBusy) {
		return nil, fmt.Errorf("%w: at most %d at once, and this one's turn comes", ErrBusy, t.PerNamespace)
	}
	return done, err
}
