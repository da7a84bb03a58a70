package reconciletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// showTimeout is how soon people are told what is wrong, once the subject has come so far: it should be
// five seconds, on a machine that has nothing else to do.
const showTimeout = 10 * time.Second

// repairOnceShown repairs in any case, so that nothing stays broken outside of the API server.
func (l *life) repairOnceShown(ctx context.Context, s Step) error {
	limit := cmp.Or(s.Within, showTimeout+moreOften*l.h.base.took)
	err := l.await(ctx, limit, func(ctx context.Context) error { return l.act(ctx, s.Shows) })
	if err != nil {
		err = fmt.Errorf("it does not show: %w", err)
	}
	if r := l.act(ctx, s.Repair); r != nil {
		return errors.Join(err, fmt.Errorf("repairing it: %w", r))
	}
	return err
}

func badCases(h *harness) []testCase {
	var out []testCase
	for _, s := range h.subject.Bad {
		if s.When != Later {
			out = append(out, testCase{s.Name + ", from the start", func(ctx context.Context) (string, error) { return "", h.badFromStart(ctx, s) }})
		}
		if s.When != FromStart {
			out = append(out, testCase{s.Name + ", later", func(ctx context.Context) (string, error) { return "", h.badLater(ctx, s) }})
		}
	}
	return out
}

func (h *harness) badFromStart(ctx context.Context, s Step) error {
	l, err := h.prepare(ctx)
	if err != nil {
		return err
	}
	if err = l.act(ctx, s.Break); err == nil {
		err = l.start(ctx, plan{})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("breaking it: %w", err), l.close())
	}
	return l.finish(ctx, l.recover(ctx, s))
}

func (h *harness) badLater(ctx context.Context, s Step) error {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return err
	}
	err = l.settle(ctx, h.subject.Timeout)
	if err == nil {
		err = l.act(ctx, s.Break)
	}
	if err == nil {
		err = l.recover(ctx, s)
	}
	return l.finish(ctx, err)
}

func (l *life) recover(ctx context.Context, s Step) error {
	if err := l.repairOnceShown(ctx, s); err != nil {
		return err
	}
	if err := l.settle(ctx, l.h.subject.Timeout); err != nil {
		return fmt.Errorf("it was repaired: %w", err)
	}
	return nil
}
