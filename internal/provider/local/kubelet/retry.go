package kubelet

import (
	"context"
	"time"
)

// retry paces attempts: the first comes soon, later ones every few seconds.
type retry struct{ next time.Duration }

func newRetry() *retry { return &retry{next: 200 * time.Millisecond} }

// wait says whether to go on.
func (r *retry) wait(ctx context.Context) bool {
	t := time.NewTimer(r.next)
	defer t.Stop()
	r.next = min(2*r.next, 5*time.Second)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
