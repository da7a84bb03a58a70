package releases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy is a source that was not asked: others of the same namespace are, and are slow to answer.
var ErrBusy = errors.New("other sources of the namespace are being read")

// What a namespace may have under way at once, and how long the next of it waits for its turn. Whoever
// waits holds a worker that other namespaces need.
const (
	perNamespace = 2
	turnTime     = time.Second
)

// turns keeps one namespace, with as many slow sources as it likes, from holding everything up.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

// turn is that of one namespace, as long as anybody of it is here.
type turn struct {
	free chan struct{}
	here int // those that have one, or wait for it
}

// take waits for a turn of the namespace, but not for long. The plane's own sources have no namespace
// and need none.
func (t *turns) take(ctx context.Context, namespace string) (done func(), err error) {
	if namespace == "" {
		return func() {}, nil
	}
	mine := t.enter(namespace)
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	select {
	case mine.free <- struct{}{}:
		return func() { <-mine.free; t.leave(namespace) }, nil
	case <-ctx.Done():
		t.leave(namespace)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: at most %d at once, and this one's turn comes", ErrBusy, perNamespace)
	}
}

func (t *turns) enter(namespace string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.all[namespace]
	if mine == nil {
		mine = &turn{free: make(chan struct{}, perNamespace)}
		if t.all == nil {
			t.all = map[string]*turn{}
		}
		t.all[namespace] = mine
	}
	mine.here++
	return mine
}

func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[namespace].here--; t.all[namespace].here == 0 {
		delete(t.all, namespace)
	}
}
