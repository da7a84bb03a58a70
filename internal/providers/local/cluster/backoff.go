package cluster

import (
	"sync"
	"time"
)

// Delays between the starts of a host that does not stay.
const (
	initialDelay = time.Second
	maxDelay     = 30 * time.Second
	// stableAfter is how long a host must have run to be one that stays.
	stableAfter = 30 * time.Second
)

// hostBackoff delays the starts of hosts that end again and again.
type hostBackoff struct {
	mu       sync.Mutex
	attempts map[string]*startAttempt
}

type startAttempt struct {
	next   time.Time
	delay  time.Duration
	exited bool // the host that was started last
}

// reserveStart returns how long to wait before the host may be started. 0 means now, and counts as a start. exited says that
// the host that was started last has ended.
func (r *hostBackoff) reserveStart(uid string, now time.Time) (delay time.Duration, exited bool) {
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
			d = min(d, startPollInterval) // it may only be starting still: look again soon
		}
		return d, t.exited
	}
	t.next, t.delay, t.exited = now.Add(t.delay), min(2*t.delay, maxDelay), false
	return 0, false
}

// recordExit records that the host that was started last has ended.
func (r *hostBackoff) recordExit(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.attempts[uid]; t != nil {
		t.exited = true
	}
}

// forget drops the backoff of a host that stays, or that is not wanted any more.
func (r *hostBackoff) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, uid)
}
