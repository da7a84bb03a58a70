package process

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/polder-kaas/polder/internal/files/logfile"
)

// maxQueuedChunks is how many chunks may wait for the disk: 2 MiB if they are full.
const maxQueuedChunks = 64

// sink takes output for a log file and never blocks its caller for long: what the disk does not take in time is dropped
// and counted.
type sink struct {
	chunks  chan []byte
	timeout time.Duration
	stalled bool // used by enqueue alone: a chunk was not taken within timeout, and none was since
	dropped atomic.Int64
	done    chan struct{}
}

// newSink starts the writer; close must be called.
func newSink(file logfile.File, timeout time.Duration) *sink {
	s := &sink{chunks: make(chan []byte, maxQueuedChunks), timeout: timeout, done: make(chan struct{})}
	go s.write(logfile.NewWriter(file))
	return s
}

func (s *sink) write(w *logfile.Writer) {
	defer close(s.done)
	defer w.Close()
	for b := range s.chunks {
		s.dropped.Add(int64(w.Append(b)))
	}
}

// enqueue hands over a copy of b, or drops it. It is not for concurrent use.
func (s *sink) enqueue(b []byte) {
	c := bytes.Clone(b)
	select {
	case s.chunks <- c:
		s.stalled = false
		return
	default:
	}
	// Only the first chunk of a stall waits: each may cost the program a whole timeout.
	if s.stalled || !s.enqueueWithin(s.timeout, c) {
		s.stalled = true
		s.dropped.Add(int64(len(c)))
	}
}

func (s *sink) enqueueWithin(d time.Duration, c []byte) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case s.chunks <- c:
		return true
	case <-timer.C:
		return false
	}
}

// close writes what was handed over. A disk that does not answer cannot be interrupted: after
// limit the writer is left to it, the one goroutine here that may outlive its owner.
func (s *sink) close(limit time.Duration) {
	close(s.chunks)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}
