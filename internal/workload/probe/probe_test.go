package probe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var key = client.ObjectKey{Namespace: "a", Name: "demo"}

// server is a cluster's API server: it answers, refuses, or hangs.
type server struct {
	asked atomic.Int64
	fails atomic.Pointer[error]
	hangs atomic.Bool
}

func (s *server) fail(err error) { s.fails.Store(&err) }

func (s *server) open(client.ObjectKey) func(context.Context) error {
	return func(ctx context.Context) error {
		s.asked.Add(1)
		if s.hangs.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := s.fails.Load(); err != nil {
			return *err
		}
		return nil
	}
}

// start runs a prober in a bubble, where time passes at once.
func start(t *testing.T, s *server) *Prober {
	t.Helper()
	p := New(s.open, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if p.Result(key) != nil {
		t.Error("something is known before it was asked")
	}
	if e := <-p.Changed(); e.Object.GetName() != "demo" || e.Object.GetNamespace() != "a" {
		t.Errorf("%v has changed", e)
	}
	if r := p.Result(key); r == nil || !r.Ready {
		t.Fatalf("%+v", r)
	}
	return p
}

func TestUnreachableIsSaidSoon(t *testing.T) {
	refused := errors.New("connection refused\nand more")
	for name, c := range map[string]struct {
		damage func(*server)
		why    string
	}{
		"it hangs":   {func(s *server) { s.hangs.Store(true) }, "no answer within 4s"},
		"it refuses": {func(s *server) { s.fail(refused) }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				p := start(t, s)
				begin := time.Now()
				c.damage(s)
				<-p.Changed()
				r := p.Result(key)
				if took := time.Since(begin); r.Ready || r.Why != c.why || took > 15*time.Second || !r.Since.Equal(time.Now()) {
					t.Errorf("after %s: %+v", took, r)
				}
				s.hangs.Store(false)
				s.fails.Store(nil)
				<-p.Changed()
				if r := p.Result(key); !r.Ready || r.Why != "" {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// One failure alone is nothing: a machine of the control plane may just be replaced.
func TestOneFailureIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		p := start(t, s)
		for range 3 {
			before := s.asked.Load()
			s.fail(errors.New("once"))
			for s.asked.Load() == before {
				time.Sleep(100 * time.Millisecond)
			}
			s.fails.Store(nil)
			time.Sleep(interval)
			if r := p.Result(key); !r.Ready {
				t.Errorf("%+v", r)
			}
		}
		select {
		case e := <-p.Changed():
			t.Errorf("%v is said to have changed", e)
		default:
		}
	})
}

// A kubeconfig that cannot be read says nothing about the cluster.
func TestNotAskedIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		p := start(t, s)
		s.fail(fmt.Errorf("%w: forbidden", ErrNotAsked))
		time.Sleep(time.Minute)
		if r := p.Result(key); !r.Ready {
			t.Errorf("%+v", r)
		}
	})
}

func TestForgottenClustersAreNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		p := start(t, s)
		p.Forget(key)
		synctest.Wait()
		before := s.asked.Load()
		time.Sleep(time.Hour)
		if s.asked.Load() != before {
			t.Error("it is still asked")
		}
	})
}

// Clusters that hang hold up others only until they are known to hang, however many they are.
func TestManyThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		p := New(func(k client.ObjectKey) func(context.Context) error {
			return func(ctx context.Context) error {
				if k.Namespace == "hangs" {
					<-ctx.Done()
					return ctx.Err()
				}
				asked.Add(1)
				return nil
			}
		}, clock.RealClock{})
		for i := range 200 {
			p.Result(client.ObjectKey{Namespace: "hangs", Name: string(rune('a' + i))})
		}
		p.Result(key) // before Start
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Start(ctx) }()
		go func() {
			for range p.Changed() {
			}
		}()
		time.Sleep(2 * time.Minute)
		if n := asked.Load(); n < 20 {
			t.Errorf("the other was asked %d times in two minutes", n)
		}
		cancel()
		<-done
		close(p.changed)
	})
}
