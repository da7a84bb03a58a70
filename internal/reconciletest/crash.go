package reconciletest

import (
	"context"
	"fmt"
	"time"
)

// A crash may make a subject reconcile more often, but not without bound.
const (
	moreOften = 2
	andPolls  = 100 // for what polls while it waits
)

// perProcess is what the start of one may take on a busy machine.
const perProcess = time.Second

func crashCases(h *harness) []testCase {
	var points []testCase
	for i := range h.base.writes {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("before write %d", i+1)
			if after {
				name = fmt.Sprintf("after write %d", i+1)
			}
			points = append(points, testCase{name, func(ctx context.Context) (string, error) { return h.crash(ctx, i+1, after) }})
		}
	}
	return append(h.sample(points, 3), testCase{"after every write", h.crashLoop})
}

// crash lives a life whose first process dies at one write.
func (h *harness) crash(ctx context.Context, at int, after bool) (string, error) {
	p := plan{interrupt: func(n int, m moment) bool { return n == at && (m != beforeWrite) == after }}
	l, err := h.wholeLife(ctx, h.subject.Timeout, p, plan{})
	if err != nil {
		return "", fmt.Errorf("after the process died at write %d, %s: %w", at, h.base.writes[at-1], err)
	}
	if n, most := l.reconciles(), moreOften*h.base.reconciles+andPolls; n > most {
		return "", fmt.Errorf("%d reconciles, at most %d were to be expected", n, most)
	}
	if l.deaths() == 0 {
		return "this time there were fewer writes", nil
	}
	return "died at " + l.processes()[0].wire.written()[at-1], nil
}

// crashLoop lives a life whose every process dies after the first write that succeeds.
func (h *harness) crashLoop(ctx context.Context) (string, error) {
	p := plan{interrupt: func(_ int, m moment) bool { return m == afterWrite }}
	l, err := h.wholeLife(ctx, h.subject.Timeout+time.Duration(len(h.base.writes))*perProcess, p, p)
	if err != nil {
		return "", fmt.Errorf("every process died after a write: %w", err)
	}
	if n, most := l.deaths(), moreOften*len(h.base.writes)+andPolls; n > most {
		return "", fmt.Errorf("%d processes were needed, each for one write; at most %d were to be expected", n, most)
	}
	return fmt.Sprintf("%d processes died", l.deaths()), nil
}

// wholeLife creates, settles within a limit, deletes.
func (h *harness) wholeLife(ctx context.Context, limit time.Duration, first, later plan) (*life, error) {
	l, err := h.begin(ctx, first)
	if err != nil {
		return l, err
	}
	l.next = later
	return l, l.finish(ctx, l.settle(ctx, limit))
}

// deaths counts the processes that died.
func (l *life) deaths() int {
	n := len(l.dead)
	if l.process.wire.isDead() {
		n++ // of its very last write
	}
	return n
}
