package workload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/workload/probe"
)

var (
	silentKey = client.ObjectKey{Namespace: "a", Name: "silent"}
	otherKey  = client.ObjectKey{Namespace: "a", Name: "other"}
)

// network has one cluster that may swallow requests and another that answers.
type network struct {
	silent   atomic.Bool
	notReady atomic.Bool
	probes   atomic.Int64
	requests atomic.Int64 // that reached the silent one
	headers  atomic.Bool  // the silent one answers, and never ends what it says
	healthy  atomic.Bool  // questions for signs of life are answered all the same
}

func (n *network) open(client.ObjectKey) func(context.Context) error {
	return func(ctx context.Context) error {
		n.probes.Add(1)
		if n.silent.Load() && !n.healthy.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		if n.notReady.Load() {
			return probe.NotReadyError("its check fails")
		}
		return nil
	}
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == silentKey.Name {
		n.requests.Add(1)
		if n.silent.Load() && n.headers.Load() {
			return &http.Response{StatusCode: http.StatusOK, Body: endlessBody{r.Context()}, Request: r}, nil
		}
		if n.silent.Load() {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// endlessBody is what never comes.
type endlessBody struct{ context.Context }

func (b endlessBody) Read([]byte) (int, error) { <-b.Done(); return 0, context.Cause(b) }
func (b endlessBody) Close() error             { return nil }

// get makes a request as the client of a cluster would.
func (n *network) get(t *testing.T, b *breaker, k client.ObjectKey) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+k.Name+"/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.wrapTransport(k)(n).RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.ReadAll(resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func startBreaker(t *testing.T, n *network) *breaker {
	t.Helper()
	b := newBreaker(n.open, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// Requests that wait for a silent cluster end once it is known, others fail at once, and it is reached again soon after it
// answers. Nobody asks it for a sign of life before and after.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		b := startBreaker(t, n)
		if err := n.get(t, b, silentKey); err != nil || b.check(silentKey) != nil {
			t.Fatal(err, b.check(silentKey))
		}
		n.silent.Store(true)
		begin := time.Now()
		unreachable := &UnreachableError{}
		if err := n.get(t, b, silentKey); !errors.As(err, &unreachable) || unreachable.Why != "no answer within 4s" {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took > 7*time.Second || took < suspicious {
			t.Errorf("it took %s", took)
		}
		begin, before := time.Now(), n.requests.Load()
		for range 100 {
			if err := n.get(t, b, silentKey); !errors.As(err, new(*UnreachableError)) {
				t.Errorf("%v", err)
			}
		}
		if err := b.check(silentKey); !errors.As(err, new(*UnreachableError)) {
			t.Errorf("%v", err)
		}
		if err := n.get(t, b, otherKey); err != nil || b.check(otherKey) != nil {
			t.Errorf("the other: %v, %v", err, b.check(otherKey))
		}
		if took := time.Since(begin); took != 0 || n.requests.Load() != before {
			t.Errorf("%d requests reached it, after %s", n.requests.Load()-before, took)
		}
		n.silent.Store(false)
		n.notReady.Store(true) // an answer all the same
		time.Sleep(30 * time.Second)
		if err := n.get(t, b, silentKey); err != nil || b.check(silentKey) != nil {
			t.Errorf("after it answers: %v, %v", err, b.check(silentKey))
		}
		asked := n.probes.Load()
		time.Sleep(time.Hour)
		if n.probes.Load() != asked || asked < 2 {
			t.Errorf("it was asked %d times, and then %d", asked, n.probes.Load()-asked)
		}
	})
}

// A cluster that is gone is asked no more, and nothing is kept of it.
func TestBreakerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		n.silent.Store(true)
		b := startBreaker(t, n)
		if err := n.get(t, b, silentKey); !errors.As(err, new(*UnreachableError)) {
			t.Errorf("%v", err)
		}
		waiting := make(chan error)
		b.forget(silentKey)
		go func() { waiting <- n.get(t, b, silentKey) }()
		synctest.Wait()
		b.forget(silentKey)
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("who waited: %v", err)
		}
		asked := n.probes.Load()
		time.Sleep(time.Hour)
		if n.probes.Load() != asked || len(b.circuit) != 0 || b.check(silentKey) != nil {
			t.Errorf("asked %d times more; %v, %v", n.probes.Load()-asked, b.circuit, b.check(silentKey))
		}
	})
}

// A cluster that says it is ready, and lets requests time out, is left alone for longer and longer. So is one that begins to
// answer. An answer makes up for it.
func TestBreakerCountsTimeouts(t *testing.T) {
	for name, headers := range map[string]bool{"no answer": false, "an answer without end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				n.silent.Store(true)
				n.healthy.Store(true)
				n.headers.Store(headers)
				b := startBreaker(t, n)
				for i := range maxTimeouts {
					if err := n.get(t, b, silentKey); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("request %d: %v", i, err)
					}
				}
				for _, pause := range []time.Duration{minPause, 2 * minPause, 4 * minPause, maxPause, maxPause} {
					before := n.requests.Load()
					for range 50 {
						if err := n.get(t, b, silentKey); !errors.As(err, new(*UnreachableError)) {
							t.Errorf("%v", err)
						}
						time.Sleep((pause - time.Second) / 50)
					}
					if got := n.requests.Load() - before; got != 0 {
						t.Errorf("%d requests reached it in %s", got, pause)
					}
					time.Sleep(2 * time.Second)
					if err := n.get(t, b, silentKey); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("after %s: %v", pause, err)
					}
				}
				time.Sleep(maxPause + time.Second)
				n.silent.Store(false)
				for range maxTimeouts {
					if err := n.get(t, b, silentKey); err != nil {
						t.Error(err)
					}
				}
				n.silent.Store(true)
				for i := range maxTimeouts {
					if err := n.get(t, b, silentKey); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("request %d after a good one: %v", i, err)
					}
				}
			})
		})
	}
}

// A cluster that falls silent during a pause is left alone until it answers.
func TestBreakerSilentInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		n.silent.Store(true)
		n.healthy.Store(true)
		b := startBreaker(t, n)
		for range maxTimeouts {
			_ = n.get(t, b, silentKey)
		}
		n.healthy.Store(false)
		b.prober.Suspect(silentKey)
		time.Sleep(3 * minPause)
		before := n.requests.Load()
		if err := n.get(t, b, silentKey); !errors.As(err, new(*UnreachableError)) || n.requests.Load() != before {
			t.Errorf("after the pause: %v", err)
		}
		n.silent.Store(false)
		time.Sleep(time.Minute)
		if err := n.get(t, b, silentKey); err != nil {
			t.Errorf("once it answers: %v", err)
		}
	})
}
