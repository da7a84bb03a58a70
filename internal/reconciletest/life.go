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

// Times of waiting.
const (
	pollEvery = 50 * time.Millisecond
	calm      = time.Second // without a write, to be called stable
)

// life is one run of the subject on objects of its own, through as many processes as it needs.
type life struct {
	h         *harness
	namespace string
	given     snapshot // what Given made
	next      plan     // of the process after the present one
	process   *process
	dead      []*process
	grave     chan struct{}
}

// begin makes the inputs and starts a process.
func (h *harness) begin(ctx context.Context, p plan) (*life, error) {
	l, err := h.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return l, l.start(ctx, p)
}

// prepare makes the inputs.
func (h *harness) prepare(ctx context.Context) (*life, error) {
	ns, err := h.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	l := &life{h: h, namespace: ns, grave: make(chan struct{})}
	if err := h.subject.Given(ctx, h.client, ns); err != nil {
		return nil, fmt.Errorf("making the inputs: %w", err)
	}
	l.given, err = h.snapshot(ctx, ns)
	return l, err
}

func (l *life) start(ctx context.Context, p plan) error {
	next, err := l.h.startProcess(ctx, l.namespace, p, l.grave)
	if err == nil {
		l.process = next
	}
	return err
}

// act does something of the subject in the life's namespace.
func (l *life) act(ctx context.Context, a Act) error { return a(ctx, l.h.client, l.namespace) }

// await asks until the answer is nil. A process that dies meanwhile is followed by another.
func (l *life) await(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pollEvery)
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
		case <-l.process.wire.dead:
			l.dead = append(l.dead, l.process)
			if err := l.start(ctx, l.next); err != nil {
				return err
			}
		case err := <-l.process.ended:
			l.process.ended <- err
			if !l.process.wire.isDead() {
				return fmt.Errorf("the manager ended: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// settle waits until everything is as it would be if nothing had gone wrong.
func (l *life) settle(ctx context.Context, limit time.Duration) error {
	return l.await(ctx, limit, l.settled)
}

func (l *life) settled(ctx context.Context) error {
	if err := l.act(ctx, l.h.subject.Settled); err != nil {
		return fmt.Errorf("not settled: %w", err)
	}
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	if d := diff(l.h.base.state, l.h.state(s, l.namespace)); d != "" {
		return fmt.Errorf("settled, but not as without a fault (-without, +now):\n%s", d)
	}
	return nil
}

// reconciles counts those of all its processes.
func (l *life) reconciles() (n int) {
	for _, p := range l.processes() {
		n += p.log.count()
	}
	return n
}

// processes are all there were.
func (l *life) processes() []*process {
	if l.process == nil || slices.Contains(l.dead, l.process) {
		return l.dead
	}
	return append(slices.Clone(l.dead), l.process)
}

// stable says whether all is settled and nothing is written any more.
func (l *life) stable(ctx context.Context) error {
	if err := l.act(ctx, l.h.subject.Settled); err != nil {
		return fmt.Errorf("not settled: %w", err)
	}
	before := len(l.process.wire.written())
	if err := pause(ctx, calm); err != nil {
		return err
	}
	if w := l.process.wire.written(); len(w) > before {
		return fmt.Errorf("settled, but it goes on writing: %s", strings.Join(w[before:], ", "))
	}
	return nil
}

// pause lets time pass in which nothing is to happen.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// delete deletes and waits until nothing is left.
func (l *life) delete(ctx context.Context) error {
	if err := l.act(ctx, l.h.subject.Delete); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return l.await(ctx, l.h.subject.Timeout, l.gone)
}

func (l *life) gone(ctx context.Context) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	for _, k := range s.keys() {
		if o := s[k]; !l.mayStay(k, &o) {
			return fmt.Errorf("left after everything was deleted: %s, finalizers %q", k, o.GetFinalizers())
		}
	}
	if err := l.act(ctx, l.h.subject.Gone); err != nil {
		return fmt.Errorf("left after everything was deleted: %w", err)
	}
	return nil
}

// mayStay is true of inputs that are not the subject's own, if no finalizer holds them.
func (l *life) mayStay(key string, o *unstructured.Unstructured) bool {
	given, ok := l.given[key]
	return ok && !l.h.isOwn(o) && o.GetDeletionTimestamp() == nil && slices.Equal(o.GetFinalizers(), given.GetFinalizers())
}

// finish ends a life that went well so far with everything deleted, and any other at once.
func (l *life) finish(ctx context.Context, err error) error {
	if err == nil {
		err = l.delete(ctx)
	}
	return errors.Join(err, l.close())
}

// close ends what runs, and lets the dead go.
func (l *life) close() error {
	close(l.grave)
	var errs []error
	for _, p := range l.processes() {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}
