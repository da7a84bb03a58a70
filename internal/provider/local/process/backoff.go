package process

import "time"

// backoff says how long to wait before a program is started again.
type backoff struct {
	first, most time.Duration
	reset       time.Duration // a run of this length is a good one: the next wait is the first again
}

// next returns the wait after a run that took ran and was preceded by the wait last, 0 if by none.
func (b backoff) next(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= b.reset {
		return b.first
	}
	return min(2*last, b.most)
}
