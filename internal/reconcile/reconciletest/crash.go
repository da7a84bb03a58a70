package reconciletest

import (
	"context"
	"fmt"
	"time"
)

// A crash may make a subject reconcile more often, but not without bound.
const (
	maxReconcileFactor = 2
	maxExtraPolls      = 100 // for subjects that poll while they wait
)

// processStartTime is what the start of a process may take on a busy machine.
const processStartTime = time.Second

func crashCases(h *harness) []testCase {
	var points []testCase
	for i := range h.baseline.writes {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("before write %d", i+1)
			if after {
				name = fmt.Sprintf("after write %d", i+1)
			}
			points = append(points, testCase{
				name, func(ctx context.Context) (string, error) { return h.crash(ctx, i+1, after) },
			})
		}
	}
	return append(h.sample(points, 3), testCase{"after every write", h.crashLoop})
}

// crash runs a scenario whose first process crashes at one write.
func (h *harness) crash(ctx context.Context, at int, after bool) (string, error) {
	p := faultPlan{interrupt: func(n int, m interruptPoint) bool { return n == at && (m != beforeWrite) == after }}
	l, err := h.runScenario(ctx, h.subject.Timeout, p, faultPlan{})
	if err != nil {
		return "", fmt.Errorf("after the process died at write %d, %s: %w", at, h.baseline.writes[at-1], err)
	}
	if n, most := l.reconciles(), maxReconcileFactor*h.baseline.reconciles+maxExtraPolls; n > most {
		return "", fmt.Errorf("%d reconciles, at most %d were to be expected", n, most)
	}
	if l.crashCount() == 0 {
		return "this time there were fewer writes", nil
	}
	return "died at " + l.processes()[0].transport.listWrites()[at-1], nil
}

// crashLoop runs a scenario whose every process crashes after the first write that succeeds.
func (h *harness) crashLoop(ctx context.Context) (string, error) {
	p := faultPlan{interrupt: func(_ int, m interruptPoint) bool { return m == afterWrite }}
	l, err := h.runScenario(ctx, h.subject.Timeout+time.Duration(len(h.baseline.writes))*processStartTime, p, p)
	if err != nil {
		return "", fmt.Errorf("every process died after a write: %w", err)
	}
	if n, most := l.crashCount(), maxReconcileFactor*len(h.baseline.writes)+maxExtraPolls; n > most {
		return "", fmt.Errorf("%d processes were needed, each for one write; at most %d were to be expected", n, most)
	}
	return fmt.Sprintf("%d processes died", l.crashCount()), nil
}

// runScenario creates the inputs, waits until all is settled, and deletes everything.
func (h *harness) runScenario(ctx context.Context, limit time.Duration, first, later faultPlan) (*scenario, error) {
	l, err := h.startScenario(ctx, first)
	if err != nil {
		return l, err
	}
	l.nextPlan = later
	return l, l.finish(ctx, l.waitUntilSettled(ctx, limit))
}

// crashCount counts the processes that have crashed.
func (l *scenario) crashCount() int {
	n := len(l.crashed)
	if l.process.transport.hasCrashed() {
		n++ // at its last write, so no other was started
	}
	return n
}
