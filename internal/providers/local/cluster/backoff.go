package cluster

import (
	"sync"
	"time"
)

// Times between the starts of a host that does not stay.
const (
	initialDelay = time.Second
	maxDelay     = 30 * time.Second
	// stableAfter is how long a host must have run to be one that stays.
	stableAfter = 30 * time.Second
)

// hostBackoff paces the starts of hosts that end again and again.
type hostBackoff struct {
	mu       sync.Mutex
	attempts map[string]*startAttempt
}

type startAttempt struct {
	next   time.Time
	delay  time.Duration
	exited bool // the host that was started last
}

// delay is how long to wait before the host may be started, and whether the one that was started
// last has ended; 0 counts as a start.
func (r *hostBackoff) delay(uid string, now time.Time) (delay time.Duration, exited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts == nil {
		r.attempts = map[string]*startAttempt{}
	}
	t := r.attempts[uid]
	if t == nil {
		t = &startAttempt{delay: initialDelay}
		r.attempts[uid] = t
	}
	if d := t.next.Sub(now); d > 0 {
		if !t.exited {
			d = min(d, startPollInterval) // it is only starting still
		}
		return d, t.exited
	}
	t.next, t.delay, t.exited = now.Add(t.delay), min(2*t.delay, maxDelay), false
	return 0, false
}

// recordExit is told when a host that was started has ended.
func (r *hostBackoff) recordExit(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.attempts[uid]; t != nil {
		t.exited = true
	}
}

// forget is for a host that stays, or that is not wanted any more.
func (r *hostBackoff) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, uid)
}
