package kubelet

import (
	"context"
	"time"
)

// backoff paces attempts: the first comes soon, later ones every few seconds.
type backoff struct{ delay time.Duration }

func newBackoff() *backoff { return &backoff{delay: 200 * time.Millisecond} }

// wait says whether to go on.
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
