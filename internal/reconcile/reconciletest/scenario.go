package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Times of polling.
const (
	pollInterval = 50 * time.Millisecond
	stablePeriod = time.Second // without a write, to count as stable
)

// scenario is one run of the subject on objects of its own, through as many processes as it needs.
type scenario struct {
	h         *harness
	namespace string
	inputs    snapshot  // what CreateInputs has created
	nextPlan  faultPlan // of the processes after the first
	process   *process
	crashed   []*process
	released  chan struct{} // closed when requests of crashed processes may end
}

// startScenario creates the inputs and starts a process.
func (h *harness) startScenario(ctx context.Context, p faultPlan) (*scenario, error) {
	l, err := h.newScenario(ctx)
	if err != nil {
		return nil, err
	}
	return l, l.start(ctx, p)
}

// newScenario creates a namespace and the inputs in it.
func (h *harness) newScenario(ctx context.Context) (*scenario, error) {
	ns, err := h.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	l := &scenario{h: h, namespace: ns, released: make(chan struct{})}
	if err := h.subject.CreateInputs(ctx, h.client, ns); err != nil {
		return nil, fmt.Errorf("making the inputs: %w", err)
	}
	l.inputs, err = h.snapshot(ctx, ns)
	return l, err
}

func (l *scenario) start(ctx context.Context, p faultPlan) error {
	next, err := l.h.startProcess(ctx, l.namespace, p, l.released)
	if err == nil {
		l.process = next
	}
	return err
}

// runAction runs an action of the subject in the scenario's namespace.
func (l *scenario) runAction(ctx context.Context, a Action) error {
	return a(ctx, l.h.client, l.namespace)
}

// waitUntil calls ask until it returns nil. If the process crashes meanwhile, another one is started.
func (l *scenario) waitUntil(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w%s", limit, err, l.process.log)
		}
		select {
		case <-l.process.transport.crashed:
			l.crashed = append(l.crashed, l.process)
			if err := l.start(ctx, l.nextPlan); err != nil {
				return err
			}
		case err := <-l.process.ended:
			// Put back: stop reads it, too.
			l.process.ended <- err
			if !l.process.transport.hasCrashed() {
				return fmt.Errorf("the manager ended: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// waitUntilSettled waits until everything is as it would be if nothing had gone wrong.
func (l *scenario) waitUntilSettled(ctx context.Context, limit time.Duration) error {
	return l.waitUntil(ctx, limit, l.checkSettled)
}

func (l *scenario) checkSettled(ctx context.Context) error {
	if err := l.runAction(ctx, l.h.subject.CheckSettled); err != nil {
		return fmt.Errorf("not settled: %w", err)
	}
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if d := diff(l.h.baseline.state, l.h.normalizedState(s, l.namespace)); d != "" {
		return fmt.Errorf("settled, but not as without a fault (-without, +now):\n%s", d)
	}
	return nil
}

// reconciles counts the reconciles of all processes.
func (l *scenario) reconciles() (n int) {
	for _, p := range l.processes() {
		n += p.log.reconcileCount()
	}
	return n
}

// processes returns all processes so far.
func (l *scenario) processes() []*process {
	if l.process == nil || slices.Contains(l.crashed, l.process) {
		return l.crashed
	}
	return append(slices.Clone(l.crashed), l.process)
}

// checkStable returns nil if all is settled and nothing is written any more.
func (l *scenario) checkStable(ctx context.Context) error {
	if err := l.runAction(ctx, l.h.subject.CheckSettled); err != nil {
		return fmt.Errorf("not settled: %w", err)
	}
	before := len(l.process.transport.listWrites())
	if err := sleep(ctx, stablePeriod); err != nil {
		return err
	}
	if w := l.process.transport.listWrites(); len(w) > before {
		return fmt.Errorf("settled, but it goes on writing: %s", strings.Join(w[before:], ", "))
	}
	return nil
}

// sleep waits, unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// delete deletes everything and waits until nothing is left.
func (l *scenario) delete(ctx context.Context) error {
	if err := l.runAction(ctx, l.h.subject.Delete); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return l.waitUntil(ctx, l.h.subject.Timeout, l.checkDeleted)
}

func (l *scenario) checkDeleted(ctx context.Context) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	for _, k := range s.keys() {
		if o := s[k]; !l.canRemain(k, &o) {
			return fmt.Errorf("left after everything was deleted: %s, finalizers %q", k, o.GetFinalizers())
		}
	}
	if err := l.runAction(ctx, l.h.subject.CheckDeleted); err != nil {
		return fmt.Errorf("left after everything was deleted: %w", err)
	}
	return nil
}

// canRemain says whether an object is an input that is not of the subject's own kind, and that nothing of the
// subject holds.
func (l *scenario) canRemain(key string, o *unstructured.Unstructured) bool {
	given, ok := l.inputs[key]
	return ok && !l.h.isOwn(o) && o.GetDeletionTimestamp() == nil && slices.Equal(o.GetFinalizers(), given.GetFinalizers())
}

// finish ends a scenario: one that went well so far by deleting everything, any other at once.
func (l *scenario) finish(ctx context.Context, err error) error {
	if err == nil {
		err = l.delete(ctx)
	}
	return errors.Join(err, l.close())
}

// close stops all processes, and releases the requests of those that have crashed.
func (l *scenario) close() error {
	close(l.released)
	var errs []error
	for _, p := range l.processes() {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}
