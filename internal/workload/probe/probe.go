// Package probe asks the API servers of workload clusters, again and again, whether they are ready. Cluster API does so
// too, but takes almost a minute to say that one is not.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/polder-kaas/polder/stack/text"
)

// Times of a probe. One that hangs right after an answer is found after interval + 2 * timeout + retry, 13 s, at most.
const (
	interval = 4 * time.Second
	timeout  = 4 * time.Second
	retry    = 500 * time.Millisecond // after a first failure
	recovery = 10 * time.Second       // of one that is known not to be ready
	failures = 2                      // in a row: one may be a replaced machine, or a moment of load
	parallel = 64                     // at a time
)

// Open returns a function that asks one cluster. That returns an error with the reason if the cluster's API server does
// not answer, or is not ready. It is not called twice at a time.
type Open func(cluster client.ObjectKey) (ask func(context.Context) error)

// ErrNotAsked is in an error that says nothing about the cluster: it could not be asked at all.
var ErrNotAsked = errors.New("the cluster was not asked")

// NotReadyError is what a cluster has answered that is not ready.
type NotReadyError string

func (e NotReadyError) Error() string { return string(e) }

// Result is what is known of a cluster's API server.
type Result struct {
	Ready   bool
	Answers bool // ready or not
	Since   time.Time
	Why     string // it is not ready
}

// Prober probes clusters. It is a Runnable of a manager.
type Prober struct {
	open    Open
	clock   clock.WithTicker
	slots   chan struct{} // of probes at a time
	waiting chan struct{} // the same, for clusters that are known not to answer: they hold up nobody else
	changed chan event.GenericEvent

	mu      sync.Mutex
	ctx     context.Context // nil until Start
	targets map[client.ObjectKey]*target
	running sync.WaitGroup
}

// target is a cluster that is probed.
type target struct {
	stop     context.CancelFunc // nil until it is probed
	delay    time.Duration      // before the first probe
	failures int
	result   *Result // nil: not known yet
}

// New returns a prober.
func New(open Open, c clock.WithTicker) *Prober {
	return &Prober{
		open: open, clock: c, slots: make(chan struct{}, parallel),
		waiting: make(chan struct{}, parallel), changed: make(chan event.GenericEvent, 1),
		targets: map[client.ObjectKey]*target{},
	}
}

// Changed has an event for each cluster whose result has changed.
func (p *Prober) Changed() <-chan event.GenericEvent { return p.changed }

// Start probes until ctx ends.
func (p *Prober) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for key, t := range p.targets {
		p.run(key, t)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.running.Wait()
	return nil
}

// Result returns what is known of a cluster, and probes it from now on. It is nil before the first result.
func (p *Prober) Result(cluster client.ObjectKey) *Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Those that are found at once, at a start, must not be asked at once for ever.
	delay := time.Duration(rand.Int64N(int64(interval))) //nolint:gosec // no secret
	return p.target(cluster, target{delay: delay}).known()
}

// Suspect probes a cluster from now on, if it is not probed yet: at once, and as if it had failed before.
func (p *Prober) Suspect(cluster client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target(cluster, target{failures: failures - 1})
}

// Peek returns what is known of a cluster; nil if it is not probed.
func (p *Prober) Peek(cluster client.ObjectKey) *Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.targets[cluster]; ok {
		return t.known()
	}
	return nil
}

// target returns the target of a cluster, which is probed from now on, and begins as given; p.mu is held.
func (p *Prober) target(cluster client.ObjectKey, begin target) *target {
	t, ok := p.targets[cluster]
	if !ok {
		t = &begin
		p.targets[cluster] = t
		if p.ctx != nil {
			p.run(cluster, t)
		}
	}
	return t
}

func (t *target) known() *Result {
	if t.result == nil {
		return nil
	}
	r := *t.result
	return &r
}

// Forget ends the probes of a cluster.
func (p *Prober) Forget(cluster client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.targets[cluster]; ok && t.stop != nil {
		t.stop()
	}
	delete(p.targets, cluster)
}

// run begins to probe; p.mu is held.
func (p *Prober) run(cluster client.ObjectKey, t *target) {
	if p.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	t.stop = cancel
	ask := p.open(cluster)
	p.running.Go(func() {
		delay := t.delay
		for p.wait(ctx, delay) {
			if err := p.probe(ctx, p.slotsFor(t), ask); ctx.Err() == nil {
				delay = p.record(ctx, cluster, t, err)
			}
		}
	})
}

// wait returns false if ctx ends first.
func (p *Prober) wait(ctx context.Context, d time.Duration) bool {
	t := p.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}

func (p *Prober) slotsFor(t *target) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.result != nil && !t.result.Ready {
		return p.waiting
	}
	return p.slots
}

// probe asks once, when there is a slot for it.
func (p *Prober) probe(ctx context.Context, slots chan struct{}, ask func(context.Context) error) error {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// record keeps the result of a probe, and returns when to ask again.
func (p *Prober) record(ctx context.Context, cluster client.ObjectKey, t *target, err error) time.Duration {
	if errors.Is(err, ErrNotAsked) {
		return interval
	}
	answers := err == nil || errors.As(err, new(NotReadyError))
	p.mu.Lock()
	was := t.result
	if err == nil {
		t.failures = 0
	} else {
		t.failures++
	}
	switch {
	case err == nil && (was == nil || !was.Ready):
		t.result = &Result{Ready: true, Answers: true, Since: p.clock.Now()}
	case t.failures >= failures && (was == nil || was.Ready || was.Answers != answers):
		t.result = &Result{Answers: answers, Since: p.clock.Now(), Why: firstLine(err)}
	}
	changed, next := t.result != was, interval
	switch {
	case t.failures == 1:
		next = retry
	case t.failures >= failures:
		next = recovery
	}
	p.mu.Unlock()
	if changed {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
		select {
		case p.changed <- event.GenericEvent{Object: o}:
		case <-ctx.Done():
		}
	}
	return next
}

// maxReason is how much is kept of a reason, which a cluster may have a part in.
const maxReason = 256

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Clone(text.Truncate(line, maxReason)) // of its own: the whole may be megabytes
}
