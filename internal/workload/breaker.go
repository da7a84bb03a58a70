package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/workload/probe"
)

const (
	// suspicious is how long a request waits for an answer until the cluster is asked for a sign of life beside it.
	suspicious = 2 * time.Second
	// maxTimeouts is how many requests to a cluster may time out in a row, whatever it says to other questions.
	maxTimeouts = 3
	// After that, and after each further one, it is left alone, for longer and longer.
	minPause, maxPause = time.Minute, 8 * time.Minute
)

// UnreachableError says that a cluster was not asked, because it does not answer anybody.
type UnreachableError struct {
	Since time.Time
	Why   string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the cluster has not answered since %s (%s); it is asked again and again",
		e.Since.UTC().Format(time.RFC3339), e.Why)
}

// breaker knows which clusters do not answer. A request to one of those fails at once, also if it waits already: some
// that swallow packets would keep all workers waiting, and every other cluster with them. It asks none but those that
// kept a request waiting, and those until they answer. One that answers these questions and lets requests time out is
// left alone for some time.
type breaker struct {
	prober *probe.Prober
	clock  clock.PassiveClock

	mu      sync.Mutex
	circuit map[client.ObjectKey]*circuit
}

// circuit is that of one cluster. It is closed, as electricians say, as long as its context is not cancelled.
type circuit struct {
	closed   context.Context
	open     context.CancelCauseFunc
	timeouts int           // in a row
	pause    time.Duration // the last one
	paused   bool          // it is open until a pause ends, and not until the cluster answers
}

func newBreaker(open probe.Open, c clock.WithTicker) *breaker {
	return &breaker{prober: probe.New(open, c), clock: c, circuit: map[client.ObjectKey]*circuit{}}
}

// run asks the clusters that are suspected, until ctx ends.
func (b *breaker) run(ctx context.Context) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-b.prober.Changed():
				b.judge(ctx, client.ObjectKeyFromObject(e.Object))
			}
		}
	}()
	return b.prober.Start(ctx)
}

// judge opens or closes the circuit of a cluster by what is known of it now.
func (b *breaker) judge(ctx context.Context, cluster client.ObjectKey) {
	r := b.prober.Peek(cluster)
	if r == nil {
		return // forgotten meanwhile
	}
	log := ctrl.LoggerFrom(ctx).WithValues("cluster", cluster)
	if r.Answers {
		b.prober.Forget(cluster)
		b.mu.Lock()
		defer b.mu.Unlock()
		if c := b.circuit[cluster]; c != nil && c.closed.Err() != nil && !c.paused {
			log.Info("A workload cluster answers again")
			c.close()
		}
		return
	}
	log.Info("A workload cluster does not answer; requests to it fail at once until it does", "reason", r.Why)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of(cluster)
	c.open(&UnreachableError{Since: r.Since, Why: r.Why}) // nothing, if it is open already
}

// close lets requests through from now on. The breaker's lock is held, or nobody else has the circuit yet.
func (c *circuit) close() {
	c.closed, c.open = context.WithCancelCause(context.Background()) //nolint:forbidigo // longer than any request
	c.paused = false
}

// closedContext returns a context that lives as long as requests to a cluster go through.
func (b *breaker) closedContext(cluster client.ObjectKey) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(cluster).closed
}

// count counts how a request ended, and leaves the cluster alone for some time if too many have timed out.
func (b *breaker) count(cluster client.ObjectKey, timedOut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of(cluster)
	if !timedOut {
		c.timeouts, c.pause = 0, 0
		return
	}
	c.timeouts++
	if c.timeouts < maxTimeouts || c.closed.Err() != nil {
		return
	}
	c.pause, c.paused = min(max(minPause, 2*c.pause), maxPause), true
	c.open(&UnreachableError{Since: b.clock.Now(), Why: fmt.Sprintf("%d requests in a row timed out", c.timeouts)})
	time.AfterFunc(c.pause, func() { b.endPause(cluster, c) })
}

// endPause lets requests through again, unless the cluster is known to be silent by now: then it waits for an answer.
func (b *breaker) endPause(cluster client.ObjectKey, c *circuit) {
	known := b.prober.Peek(cluster)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.circuit[cluster] != c || !c.paused: // forgotten
	case known != nil && !known.Answers:
		c.paused = false
	default:
		c.close()
	}
}

// of returns the circuit of a cluster; the lock is held.
func (b *breaker) of(cluster client.ObjectKey) *circuit {
	c := b.circuit[cluster]
	if c == nil {
		c = &circuit{}
		c.close()
		b.circuit[cluster] = c
	}
	return c
}

// check returns an UnreachableError if a cluster is known not to answer.
func (b *breaker) check(cluster client.ObjectKey) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuit[cluster]; c != nil {
		return context.Cause(c.closed)
	}
	return nil
}

func (b *breaker) forget(cluster client.ObjectKey) {
	b.prober.Forget(cluster)
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuit[cluster]; c != nil {
		c.open(nil)
		delete(b.circuit, cluster)
	}
}

// wrapTransport returns what puts the circuit of a cluster into a transport.
func (b *breaker) wrapTransport(cluster client.ObjectKey) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			closed := b.closedContext(cluster)
			if err := context.Cause(closed); err != nil {
				return nil, err
			}
			ctx, cancel := context.WithCancelCause(req.Context())
			stop := context.AfterFunc(closed, func() { cancel(context.Cause(closed)) })
			end := func() { stop(); cancel(nil) }
			suspect := time.AfterFunc(suspicious, func() { b.prober.Suspect(cluster) })
			resp, err := next.RoundTrip(req.WithContext(ctx))
			suspect.Stop()
			if err != nil {
				end()
				if cause := context.Cause(closed); cause != nil && req.Context().Err() == nil {
					return nil, cause
				}
				if isTimeout(err) {
					b.count(cluster, true)
				}
				return nil, err
			}
			resp.Body = &countedBody{ReadCloser: resp.Body, end: end, count: func(t bool) { b.count(cluster, t) }}
			return resp, nil
		})
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// countedBody is the body of a response; how reading it ends is counted, and closing it ends the request.
type countedBody struct {
	io.ReadCloser
	end   func()
	count func(timedOut bool)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.count(false)
	case err != nil && isTimeout(err):
		b.count(true)
	}
	return n, err
}

func (b *countedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
