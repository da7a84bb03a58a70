package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// randomDeletes is how many deletions are tested at a random time, not at a write.
const randomDeletes = 20

func deletedCases(h *harness) []testCase {
	out := []testCase{{"at once", func(ctx context.Context) (string, error) { return "", h.deleteAfterWrite(ctx, 0) }}}
	var points []testCase
	for n := range h.baseline.writesUntilSettled {
		points = append(points, testCase{
			fmt.Sprintf("after write %d", n+1),
			func(ctx context.Context) (string, error) { return "", h.deleteAfterWrite(ctx, n+1) },
		})
	}
	out = append(out, h.sample(points, 2)...)
	for _, s := range h.subject.DeleteBlockers {
		out = append(out, testCase{
			"blocked by " + s.Name, func(ctx context.Context) (string, error) { return "", h.deleteBlocked(ctx, s) },
		})
	}
	var moments []testCase
	for range randomDeletes {
		d := time.Duration(h.random.Int64N(int64(h.baseline.settleTime) + 1)).Round(time.Millisecond)
		moments = append(moments, testCase{
			"after " + d.String(), func(ctx context.Context) (string, error) { return "", h.deleteAfterDelay(ctx, d) },
		})
	}
	return append(out, h.sample(moments, 1)...)
}

// deleteAfterWrite deletes everything when the subject has made n writes and has the answers to n-1.
func (h *harness) deleteAfterWrite(ctx context.Context, n int) error {
	l, err := h.newScenario(ctx)
	if err != nil {
		return err
	}
	deleted := make(chan error, 1)
	remove := func() { deleted <- l.runAction(ctx, h.subject.Delete) }
	if n == 0 {
		remove()
	}
	err = l.start(ctx, faultPlan{interrupt: func(i int, m interruptPoint) bool {
		if i == n && m != beforeWrite {
			remove()
		}
		return false
	}})
	if err != nil {
		return err
	}
	err = l.waitUntil(ctx, h.subject.Timeout, func(ctx context.Context) error {
		select {
		case err := <-deleted:
			deleted <- err
			return nil
		default:
			// This run may make fewer than n writes; then it is deleted once it is settled.
			return l.runAction(ctx, h.subject.CheckSettled)
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

// deleteAfterDelay deletes everything after some time.
func (h *harness) deleteAfterDelay(ctx context.Context, d time.Duration) error {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return err
	}
	return l.finish(ctx, sleep(ctx, d))
}

// deleteBlocked deletes everything while a fault blocks it.
func (h *harness) deleteBlocked(ctx context.Context, s Fault) error {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return err
	}
	err = l.waitUntilSettled(ctx, h.subject.Timeout)
	if err == nil {
		err = l.runAction(ctx, s.Break)
	}
	if err == nil {
		err = errors.Join(l.runAction(ctx, h.subject.Delete), l.repairOnceReported(ctx, s))
	}
	return l.finish(ctx, err)
}
