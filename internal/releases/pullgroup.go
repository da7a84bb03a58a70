package releases

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/polder-kaas/polder/stack"
)

// pullGroup makes one pull for all callers that want the same at the same time.
type pullGroup struct {
	mu       sync.Mutex
	inFlight map[pullKey]*sharedPull
}

// pullKey is what a caller wants. A caller with other credentials wants something else: what they may see, and
// what fails for them, is not for others.
type pullKey struct {
	source      fingerprint
	tag, digest string
}

// pullResult is a release that was pulled.
type pullResult struct {
	release *stack.Release
	digest  string
}

// sharedPull is a pull that one caller, the leader, makes for all. The leader writes it before done is closed.
type sharedPull struct {
	done   chan struct{}
	result pullResult
	err    error
	retry  bool // the leader gave up, or may not pull: another caller has to
}

// do pulls what is wanted, or waits until ctx ends for another caller who does.
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

// join returns the pull of a key that is under way, or a new one that the caller has to make.
func (f *pullGroup) join(key pullKey) (w *sharedPull, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, ok := f.inFlight[key]; ok {
		return w, false
	}
	if f.inFlight == nil {
		f.inFlight = map[pullKey]*sharedPull{}
	}
	// retry stays true if the leader panics.
	w = &sharedPull{done: make(chan struct{}), retry: true}
	f.inFlight[key] = w
	return w, true
}

// runAsLeader makes the pull for all who wait for it.
func (f *pullGroup) runAsLeader(ctx context.Context, key pullKey, w *sharedPull,
	get func() (pullResult, error)) (pullResult, error) {
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
