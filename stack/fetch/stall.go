package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// minProgress is how much of a body must come while Limits.Stall is waited for it. It is far below what the slowest
// link brings, and far above what a server sends that only wants to keep us.
const minProgress = 4 << 10

// ErrStalled is a server that has sent almost nothing for too long.
var ErrStalled = errors.New("stalled")

// stallReader is a body that is given up when it makes no progress. Only the time that somebody waits for bytes counts:
// who reads slowly does not make a server slow. It is read by one goroutine, as all bodies are.
type stallReader struct {
	io.ReadCloser
	clock   clock.WithDelayedExecution
	limit   time.Duration
	cancel  context.CancelCauseFunc // ends the request, and with it a Read that waits
	stalled atomic.Bool

	waited time.Duration // since there was progress
	came   int           // bytes, in that time
}

// Read waits as long as there can still be progress in time.
func (r *stallReader) Read(p []byte) (int, error) {
	if r.stalled.Load() {
		return 0, r.stallError()
	}
	began := r.clock.Now()
	alarm := r.clock.AfterFunc(r.limit-r.waited, r.giveUp)
	n, err := r.ReadCloser.Read(p)
	alarm.Stop()
	r.waited += r.clock.Since(began)
	if r.came += n; r.came >= minProgress {
		r.waited, r.came = 0, 0
	}
	switch {
	case err != nil && !r.stalled.Load():
		return n, err
	case err == nil && r.waited < r.limit:
		return n, nil
	}
	r.giveUp()
	return n, r.stallError()
}

func (r *stallReader) giveUp() {
	r.stalled.Store(true)
	r.cancel(ErrStalled)
}

// Close ends the request.
func (r *stallReader) Close() error {
	err := r.ReadCloser.Close()
	r.cancel(nil)
	return err
}

func (r *stallReader) stallError() error {
	return fmt.Errorf("%w: less than %d bytes came in %s", ErrStalled, minProgress, r.limit)
}
