package process

import "time"

// backoff says how long to wait before a program is started again.
type backoff struct {
	initial, max time.Duration
	resetAfter   time.Duration // a run of this length is a good one: the next delay is the initial one again
}

// next returns the delay after a run that took ran and was preceded by the delay last, 0 if by none.
func (b backoff) next(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= b.resetAfter {
		return b.initial
	}
	return min(2*last, b.max)
}
