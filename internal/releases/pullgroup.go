package releases

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/polder-kaas/polder/stack"
)

// pullGroup lets those that want the same wait for the one of them who gets it.
type pullGroup struct {
	mu       sync.Mutex
	inFlight map[pullKey]*sharedPull
}

// pullKey is what is wanted. Who has other credentials wants something else: what they may see, and
// what fails for them, is not for others.
type pullKey struct {
	source      fingerprint
	tag, digest string
}

// pullResult is what was got.
type pullResult struct {
	release *stack.Release
	digest  string
}

// sharedPull is written by who gets it, before done is closed.
type sharedPull struct {
	done   chan struct{}
	result pullResult
	err    error
	retry  bool // who was to get it went away, or may not: somebody else has to
}

// do gets what is wanted, or waits for somebody who does until ctx ends.
func (f *pullGroup) do(ctx context.Context, key pullKey, get func() (pullResult, error)) (pullResult, error) {
	for {
		w, mine := f.join(key)
		if mine {
			return f.runAsLeader(ctx, key, w, get)
		}
		select {
		case <-ctx.Done():
			return pullResult{}, fmt.Errorf("pulling %s: waiting for another who does: %w", key.tag, ctx.Err())
		case <-w.done:
		}
		if !w.retry {
			return w.result, w.err
		}
	}
}

func (f *pullGroup) join(key pullKey) (w *sharedPull, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, ok := f.inFlight[key]; ok {
		return w, false
	}
	if f.inFlight == nil {
		f.inFlight = map[pullKey]*sharedPull{}
	}
	w = &sharedPull{done: make(chan struct{}), retry: true}
	f.inFlight[key] = w
	return w, true
}

func (f *pullGroup) runAsLeader(ctx context.Context, key pullKey, w *sharedPull, get func() (pullResult, error)) (pullResult, error) {
	defer func() { // after a panic too
		f.mu.Lock()
		delete(f.inFlight, key)
		f.mu.Unlock()
		close(w.done)
	}()
	w.result, w.err = get()
	w.retry = w.err != nil && ctx.Err() != nil || errors.Is(w.err, errQuotaExceeded)
	return w.result, w.err
}
