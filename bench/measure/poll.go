package measure

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Poll says how to ask again and again. Every is the error of a time that is measured so.
type Poll struct {
	Every   time.Duration
	Timeout time.Duration // WaitTimeout if it is zero
	Stop    func() error  // ends polling early, for example when a process has ended; optional
}

// Do calls ask until it returns nil. If that does not happen, what ask said last is part of the error.
func (p Poll) Do(ctx context.Context, what string, ask func(context.Context) error) error {
	if p.Timeout == 0 {
		p.Timeout = WaitTimeout
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, p.Every, p.Timeout, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		if last == nil || p.Stop == nil {
			return last == nil, nil
		}
		return false, p.Stop()
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err):
		return fmt.Errorf("waiting for %s: %w; the last answer was: %w", what, err, last)
	}
	return fmt.Errorf("waiting for %s: %w", what, err)
}

// Poll says how to ask the plane: until polderd has ended.
func (p *Plane) Poll(every time.Duration) Poll { return Poll{Every: every, Stop: p.EndedError} }

// AwaitGone returns when an object is gone.
func (p *Plane) AwaitGone(ctx context.Context, o client.Object, every time.Duration) error {
	key := client.ObjectKeyFromObject(o)
	return p.Poll(every).Do(ctx, "the end of "+key.String(), func(ctx context.Context) error {
		err := p.Client.Get(ctx, key, o)
		if err == nil {
			return fmt.Errorf("it is still there, with finalizers %q", o.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}
