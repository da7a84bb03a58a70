package kubelet

import (
	"context"
	"time"
)

// backoff delays attempts: the second comes soon, later ones every few seconds.
type backoff struct{ delay time.Duration }

func newBackoff() *backoff { return &backoff{delay: 200 * time.Millisecond} }

// wait waits out the next delay; it returns false when ctx has ended.
func (r *backoff) wait(ctx context.Context) bool {
	t := time.NewTimer(r.delay)
	defer t.Stop()
	r.delay = min(2*r.delay, 5*time.Second)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
