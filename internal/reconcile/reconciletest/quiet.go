package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const repeatedReconciles = 20 // how often everything is reconciled again

func quietCases(h *harness) []testCase { return []testCase{{"settled", h.expectQuiet}} }

// expectQuiet checks that a settled subject does nothing, and writes nothing if everything is reconciled again.
func (h *harness) expectQuiet(ctx context.Context) (string, error) {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return "", err
	}
	err = l.waitUntil(ctx, h.subject.Timeout, l.checkStable)
	if err == nil {
		err = l.expectNoActivity(ctx)
	}
	if err == nil {
		err = l.reconcileManually(ctx)
	}
	return "", l.finish(ctx, err)
}

func (l *scenario) expectNoActivity(ctx context.Context) error {
	d := 2 * time.Second
	if l.h.fullDurations {
		d = 30 * time.Second
	}
	writes, runs := len(l.process.transport.listWrites()), l.reconciles()
	if err := sleep(ctx, d); err != nil {
		return err
	}
	if w := l.process.transport.listWrites()[writes:]; len(w) > 0 {
		return fmt.Errorf("settled, but wrote within %s: %s", d, strings.Join(w, ", "))
	}
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if n, most := l.reconciles()-runs, len(s)*len(l.process.controllers)*(l.h.subject.MaxEvents+
		int(d/l.h.subject.MinRequeueAfter)); n > most {
		return fmt.Errorf("settled, but reconciled %d times within %s; at most %d were to be expected", n, d, most)
	}
	return nil
}

// reconcileManually replaces the process by one whose controllers are called by hand, repeatedly for each object.
func (l *scenario) reconcileManually(ctx context.Context) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if err := l.process.stop(); err != nil {
		return err
	}
	byHand, err := l.h.startProcess(ctx, l.namespace, faultPlan{manualReconcile: true}, l.released)
	if err != nil {
		return err
	}
	for range repeatedReconciles {
		for _, key := range s.keys() {
			o := s[key]
			if err := l.h.reconcileOnce(ctx, byHand, reconcile.Request{NamespacedName: keyOf(&o)}); err != nil {
				return errors.Join(err, byHand.stop())
			}
		}
	}
	w := byHand.transport.listWrites()
	if err := byHand.stop(); err != nil {
		return err
	}
	if len(w) > 0 {
		return fmt.Errorf("settled and reconciled %d times more, it made %d writes, of which the first is %s",
			repeatedReconciles, len(w), w[0])
	}
	return l.start(ctx, faultPlan{})
}

// reconcileOnce passes a request to all controllers. Those whose kind has no such object do nothing.
func (h *harness) reconcileOnce(ctx context.Context, p *process, r reconcile.Request) error {
	for _, c := range p.controllers {
		res, err := c.Reconcile(ctx, r)
		if err != nil {
			return fmt.Errorf("settled, but reconciling %s again: %w", r, err)
		}
		if after := res.RequeueAfter; after > 0 && after < h.subject.MinRequeueAfter {
			return fmt.Errorf("settled, but %s wants to be reconciled again after %s, less than %s", r.Name, after,
				h.subject.MinRequeueAfter)
		}
	}
	return nil
}
