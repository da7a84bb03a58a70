// Package turns keeps one namespace, with as many slow things as it likes, from holding everything up.
package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy is somebody whose turn it was not: others of the same namespace are slow.
var ErrBusy = errors.New("others of the namespace are under way")

// wait is how long somebody waits for its turn. Whoever waits holds a worker that other namespaces need.
const wait = time.Second

// Turns has some turns for each namespace. Its method may be called concurrently.
type Turns struct {
	Each int // for each namespace
	Wait int // how many of a namespace may wait for one; 0: as many as come

	mu  sync.Mutex
	all map[string]*turn
}

// turn is that of one namespace, as long as anybody of it is here.
type turn struct {
	free chan struct{}
	here int // those that have one, or wait for it
}

// Take waits for a turn of the namespace, but not for long. Whoever has it must call done. What belongs to no
// namespace needs none.
func (t *Turns) Take(ctx context.Context, namespace string) (done func(), err error) {
	if namespace == "" {
		return func() {}, nil
	}
	mine := t.enter(namespace)
	if mine == nil {
		return nil, t.busy()
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case mine.free <- struct{}{}:
		return func() { <-mine.free; t.leave(namespace) }, nil
	case <-ctx.Done():
		t.leave(namespace)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, t.busy()
	}
}

func (t *Turns) busy() error {
	return fmt.Errorf("%w: at most %d at once, and this one's turn comes", ErrBusy, t.Each)
}

// enter is nil if too many of the namespace wait.
func (t *Turns) enter(namespace string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.all[namespace]
	if mine == nil {
		mine = &turn{free: make(chan struct{}, t.Each)}
		if t.all == nil {
			t.all = map[string]*turn{}
		}
		t.all[namespace] = mine
	}
	if t.Wait > 0 && mine.here >= t.Each+t.Wait {
		return nil
	}
	mine.here++
	return mine
}

func (t *Turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[namespace].here--; t.all[namespace].here == 0 {
		delete(t.all, namespace)
	}
}
