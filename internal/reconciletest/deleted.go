package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// randomDeletes is how often it is tried at any moment, not only at writes.
const randomDeletes = 20

func deletedCases(h *harness) []testCase {
	out := []testCase{{"at once", func(ctx context.Context) (string, error) { return "", h.deleteAfterWrite(ctx, 0) }}}
	var points []testCase
	for n := range h.base.created {
		points = append(points, testCase{fmt.Sprintf("after write %d", n+1), func(ctx context.Context) (string, error) { return "", h.deleteAfterWrite(ctx, n+1) }})
	}
	out = append(out, h.sample(points, 2)...)
	for _, s := range h.subject.Blocked {
		out = append(out, testCase{"blocked by " + s.Name, func(ctx context.Context) (string, error) { return "", h.deleteBlocked(ctx, s) }})
	}
	var moments []testCase
	for range randomDeletes {
		d := time.Duration(h.random.Int64N(int64(h.base.took) + 1)).Round(time.Millisecond)
		moments = append(moments, testCase{"after " + d.String(), func(ctx context.Context) (string, error) { return "", h.deleteAt(ctx, d) }})
	}
	return append(out, h.sample(moments, 1)...)
}

// deleteAfterWrite deletes everything when the subject has made n writes and knows of n-1.
func (h *harness) deleteAfterWrite(ctx context.Context, n int) error {
	l, err := h.prepare(ctx)
	if err != nil {
		return err
	}
	deleted := make(chan error, 1)
	remove := func() { deleted <- l.act(ctx, h.subject.Delete) }
	if n == 0 {
		remove()
	}
	err = l.start(ctx, plan{interrupt: func(i int, m moment) bool {
		if i == n && m != beforeWrite {
			remove()
		}
		return false
	}})
	if err != nil {
		return err
	}
	err = l.await(ctx, h.subject.Timeout, func(ctx context.Context) error {
		select {
		case err := <-deleted:
			deleted <- err
			return nil
		default:
			return l.act(ctx, h.subject.Settled)
		}
	})
	if err == nil {
		err = l.delete(ctx)
	}
	if err != nil {
		err = fmt.Errorf("deleted after %d writes: %w", n, err)
	}
	return errors.Join(err, l.close())
}

// deleteAt deletes everything after some time.
func (h *harness) deleteAt(ctx context.Context, d time.Duration) error {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return err
	}
	return l.finish(ctx, pause(ctx, d))
}

// deleteBlocked deletes everything while something is in the way.
func (h *harness) deleteBlocked(ctx context.Context, s Step) error {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return err
	}
	err = l.settle(ctx, h.subject.Timeout)
	if err == nil {
		err = l.act(ctx, s.Break)
	}
	if err == nil {
		err = errors.Join(l.act(ctx, h.subject.Delete), l.repairOnceShown(ctx, s))
	}
	return l.finish(ctx, err)
}
