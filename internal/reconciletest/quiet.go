package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const again = 20 // is how often everything is reconciled once more

func quietCases(h *harness) []testCase { return []testCase{{"settled", h.quiet}} }

// quiet waits while nothing is to happen, and then reconciles everything again.
func (h *harness) quiet(ctx context.Context) (string, error) {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return "", err
	}
	err = l.await(ctx, h.subject.Timeout, l.stable)
	if err == nil {
		err = l.watchQuiet(ctx)
	}
	if err == nil {
		err = l.callAgain(ctx)
	}
	return "", l.finish(ctx, err)
}

func (l *life) watchQuiet(ctx context.Context) error {
	d := 2 * time.Second
	if l.h.long {
		d = 30 * time.Second
	}
	writes, runs := len(l.process.wire.written()), l.reconciles()
	if err := pause(ctx, d); err != nil {
		return err
	}
	if w := l.process.wire.written()[writes:]; len(w) > 0 {
		return fmt.Errorf("settled, but wrote within %s: %s", d, strings.Join(w, ", "))
	}
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if n, most := l.reconciles()-runs, len(s)*len(l.process.controllers)*(l.h.subject.News+int(d/l.h.subject.Poll)); n > most {
		return fmt.Errorf("settled, but reconciled %d times within %s; at most %d were to be expected", n, d, most)
	}
	return nil
}

// callAgain lets a process take over whose controllers are called by hand, again and again with all
// that is there.
func (l *life) callAgain(ctx context.Context) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if err := l.process.stop(); err != nil {
		return err
	}
	byHand, err := l.h.startProcess(ctx, l.namespace, plan{byHand: true}, l.grave)
	if err != nil {
		return err
	}
	for range again {
		for _, key := range s.keys() {
			o := s[key]
			if err := l.h.call(ctx, byHand, reconcile.Request{NamespacedName: keyOf(&o)}); err != nil {
				return errors.Join(err, byHand.stop())
			}
		}
	}
	w := byHand.wire.written()
	if err := byHand.stop(); err != nil {
		return err
	}
	if len(w) > 0 {
		return fmt.Errorf("settled and reconciled %d times more, it made %d writes, of which the first is %s", again, len(w), w[0])
	}
	return l.start(ctx, plan{})
}

// call gives a request to all controllers. Those whose kind has no such object do nothing.
func (h *harness) call(ctx context.Context, p *process, r reconcile.Request) error {
	for _, c := range p.controllers {
		res, err := c.Reconcile(ctx, r)
		if err != nil {
			return fmt.Errorf("settled, but reconciling %s again: %w", r, err)
		}
		if after := res.RequeueAfter; after > 0 && after < h.subject.Poll {
			return fmt.Errorf("settled, but %s wants to be reconciled again after %s, less than %s", r.Name, after, h.subject.Poll)
		}
	}
	return nil
}
