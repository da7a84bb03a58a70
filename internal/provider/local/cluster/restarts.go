package cluster

import (
	"sync"
	"time"
)

// Times between the starts of a host that does not stay.
const (
	firstDelay = time.Second
	mostDelay  = 30 * time.Second
	// steady is how long a host must have run to be one that stays.
	steady = 30 * time.Second
)

// restarts paces the starts of hosts that end again and again.
type restarts struct {
	mu    sync.Mutex
	tries map[string]*try
}

type try struct {
	next  time.Time
	delay time.Duration
	ended bool // the host that was started last
}

// pause is how long to wait before the host may be started, and whether the one that was started
// last has ended; 0 counts as a start.
func (r *restarts) pause(uid string, now time.Time) (pause time.Duration, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil {
		r.tries = map[string]*try{}
	}
	t := r.tries[uid]
	if t == nil {
		t = &try{delay: firstDelay}
		r.tries[uid] = t
	}
	if d := t.next.Sub(now); d > 0 {
		if !t.ended {
			d = min(d, startPoll) // it is only starting still
		}
		return d, t.ended
	}
	t.next, t.delay, t.ended = now.Add(t.delay), min(2*t.delay, mostDelay), false
	return 0, false
}

// ended is told when a host that was started has ended.
func (r *restarts) ended(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tries[uid]; t != nil {
		t.ended = true
	}
}

// forget is for a host that stays, or that is not wanted any more.
func (r *restarts) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, uid)
}
