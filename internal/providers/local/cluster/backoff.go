package cluster

import (
	"time"

	"github.com/polder-kaas/polder/internal/reconcile"
)

// Delays between the starts of a host that does not stay.
const (
	initialDelay = time.Second
	maxDelay     = 30 * time.Second
	// stableAfter is how long a host must have run to be one that stays.
	stableAfter = 30 * time.Second
)

// hostBackoff delays the starts of hosts that end again and again. Keys are UIDs of LocalClusters.
type hostBackoff struct {
	reconcile.Memory[string, startAttempt]
}

type startAttempt struct {
	next   time.Time
	delay  time.Duration
	exited bool // the host that was started last
}

// reserveStart returns how long to wait before the host may be started. 0 means now, and counts as a start. exited says
// that the host that was started last has ended.
func (b *hostBackoff) reserveStart(uid string, now time.Time) (delay time.Duration, exited bool) {
	b.Update(uid, func(a startAttempt, known bool) startAttempt {
		if !known {
			a.delay = initialDelay
		}
		if delay, exited = max(a.next.Sub(now), 0), a.exited; delay > 0 {
			return a
		}
		exited = false
		return startAttempt{next: now.Add(a.delay), delay: min(2*a.delay, maxDelay)}
	})
	if delay > 0 && !exited {
		delay = min(delay, startPollInterval) // it may only be starting still: look again soon
	}
	return delay, exited
}

// recordExit records that the host that was started last has ended. It is called beside reconciliations, which must not
// lose what they reserve meanwhile.
func (b *hostBackoff) recordExit(uid string) {
	b.UpdateKnown(uid, func(a startAttempt) startAttempt {
		a.exited = true
		return a
	})
}
