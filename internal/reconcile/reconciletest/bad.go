package reconciletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// reportTimeout is how soon the subject has to report what is wrong, beside the time of settling. It should be
// five seconds, on a machine that has nothing else to do.
const reportTimeout = 10 * time.Second

// repairOnceReported waits until a fault is reported, and repairs it. It repairs in any case, so that nothing
// stays broken outside of the API server.
func (l *scenario) repairOnceReported(ctx context.Context, s Fault) error {
	limit := cmp.Or(s.ReportTimeout, reportTimeout+maxReconcileFactor*l.h.baseline.settleTime)
	err := l.waitUntil(ctx, limit, func(ctx context.Context) error { return l.runAction(ctx, s.CheckReported) })
	if err != nil {
		err = fmt.Errorf("it does not show: %w", err)
	}
	if r := l.runAction(ctx, s.Repair); r != nil {
		return errors.Join(err, fmt.Errorf("repairing it: %w", r))
	}
	return err
}

func badCases(h *harness) []testCase {
	var out []testCase
	for _, s := range h.subject.BadInputs {
		if s.Timing != AfterSettled {
			out = append(out, testCase{
				s.Name + ", from the start", func(ctx context.Context) (string, error) { return "", h.breakFromStart(ctx, s) },
			})
		}
		if s.Timing != FromStart {
			out = append(out, testCase{
				s.Name + ", later", func(ctx context.Context) (string, error) { return "", h.breakAfterSettled(ctx, s) },
			})
		}
	}
	return out
}

func (h *harness) breakFromStart(ctx context.Context, s Fault) error {
	l, err := h.newScenario(ctx)
	if err != nil {
		return err
	}
	if err = l.runAction(ctx, s.Break); err == nil {
		err = l.start(ctx, faultPlan{})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("breaking it: %w", err), l.close())
	}
	return l.finish(ctx, l.repairAndSettle(ctx, s))
}

func (h *harness) breakAfterSettled(ctx context.Context, s Fault) error {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return err
	}
	err = l.waitUntilSettled(ctx, h.subject.Timeout)
	if err == nil {
		err = l.runAction(ctx, s.Break)
	}
	if err == nil {
		err = l.repairAndSettle(ctx, s)
	}
	return l.finish(ctx, err)
}

func (l *scenario) repairAndSettle(ctx context.Context, s Fault) error {
	if err := l.repairOnceReported(ctx, s); err != nil {
		return err
	}
	if err := l.waitUntilSettled(ctx, l.h.subject.Timeout); err != nil {
		return fmt.Errorf("it was repaired: %w", err)
	}
	return nil
}
