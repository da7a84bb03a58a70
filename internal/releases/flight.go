package releases

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/polder-kaas/polder/stack"
)

// flights lets those that want the same wait for the one of them who gets it.
type flights struct {
	mu  sync.Mutex
	now map[flight]*waiting
}

// flight is what is wanted. Who has other credentials wants something else: what they may see, and
// what fails for them, is not for others.
type flight struct {
	source      fingerprint
	tag, digest string
}

// landed is what was got.
type landed struct {
	release *stack.Release
	digest  string
}

// waiting is written by who gets it, before done is closed.
type waiting struct {
	done  chan struct{}
	got   landed
	err   error
	again bool // who was to get it went away, or may not: somebody else has to
}

// do gets what is wanted, or waits for somebody who does until ctx ends.
func (f *flights) do(ctx context.Context, key flight, get func() (landed, error)) (landed, error) {
	for {
		w, mine := f.join(key)
		if mine {
			return f.lead(ctx, key, w, get)
		}
		select {
		case <-ctx.Done():
			return landed{}, fmt.Errorf("pulling %s: waiting for another who does: %w", key.tag, ctx.Err())
		case <-w.done:
		}
		if !w.again {
			return w.got, w.err
		}
	}
}

func (f *flights) join(key flight) (w *waiting, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, ok := f.now[key]; ok {
		return w, false
	}
	if f.now == nil {
		f.now = map[flight]*waiting{}
	}
	w = &waiting{done: make(chan struct{}), again: true}
	f.now[key] = w
	return w, true
}

func (f *flights) lead(ctx context.Context, key flight, w *waiting, get func() (landed, error)) (landed, error) {
	defer func() { // after a panic too
		f.mu.Lock()
		delete(f.now, key)
		f.mu.Unlock()
		close(w.done)
	}()
	w.got, w.err = get()
	w.again = w.err != nil && ctx.Err() != nil || errors.Is(w.err, errSpent)
	return w.got, w.err
}
