package providertest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/provider"
)

// inputFor is an input for a cluster of the given name.
func inputFor(name string) provider.Input {
	in := testInputs(goodProvider{}.base(), SampleReleases()[0])[2].input()
	in.Cluster.Name = name
	return in
}

func TestFaultyPassesTheSuite(t *testing.T) {
	Run(t, NewFaulty(goodProvider{}), Options{})
}

func TestFaults(t *testing.T) {
	want, err := goodProvider{}.Topology(t.Context(), inputFor("a"))
	if err != nil || len(want.Pools) == 0 {
		t.Fatal(want, err)
	}
	for name, c := range map[string]struct {
		fault Fault
		err   error // nil: the answer is right
		done  int
	}{
		"none":             {nil, nil, 1},
		"fails":            {Fail(ErrTooMany), ErrTooMany, 0},
		"loses the reply":  {LoseReply(), ErrReplyLost, 1},
		"is slow":          {Slow(time.Hour), nil, 1},
		"is too slow":      {Slow(48 * time.Hour), context.DeadlineExceeded, 0},
		"hangs":            {Hang(), context.DeadlineExceeded, 0},
		"takes all memory": {UseMemory(1 << 20), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFaulty(goodProvider{})
				f.QueueFaults(c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				got, err := f.Topology(ctx, inputFor("a"))
				if !errors.Is(err, c.err) || f.Reached("Topology") != c.done || f.Calls("Topology") != 1 {
					t.Errorf("error %v after %d calls, %d of them done", err, f.Calls("Topology"), f.Reached("Topology"))
				}
				wanted := want
				if c.err != nil {
					wanted = provider.Topology{}
				}
				if diff := cmp.Diff(wanted, got); diff != "" {
					t.Errorf("another answer: %s", diff)
				}
				if again, err := f.Topology(ctx, inputFor("a")); err != nil || again.Pools == nil {
					t.Errorf("the next call: %v, %v", again, err)
				}
			})
		})
	}
}

func TestFaultsOfOneCluster(t *testing.T) {
	f := NewFaulty(goodProvider{})
	f.SetClusterFault("a", Fail(ErrServer))
	for range 2 {
		if _, err := f.Topology(t.Context(), inputFor("a")); !errors.Is(err, ErrServer) {
			t.Errorf("cluster a: %v", err)
		}
		if _, err := f.Topology(t.Context(), inputFor("b")); err != nil {
			t.Errorf("cluster b: %v", err)
		}
		if l := f.Validate(t.Context(), inputFor("a")); len(l) > 0 {
			t.Errorf("Validate cannot know: %v", l)
		}
	}
	f.SetClusterFault("a", nil)
	if _, err := f.Topology(t.Context(), inputFor("a")); err != nil {
		t.Errorf("cluster a after all: %v", err)
	}
	if f.Calls("a") != 5 || f.Reached("a") != 1 || f.Calls("b") != 2 || f.Reached("b") != 2 || f.Calls("Validate") != 2 {
		t.Errorf("calls: a %d of %d, b %d of %d, Validate %d", f.Reached("a"), f.Calls("a"), f.Reached("b"), f.Calls("b"), f.Calls("Validate"))
	}
}

func TestRevokedCredentials(t *testing.T) {
	f := NewFaulty(goodProvider{})
	f.Revoke()
	if _, err := f.Topology(t.Context(), inputFor("a")); !errors.Is(err, ErrRevoked) || !errors.Is(f.Health(t.Context()), ErrRevoked) {
		t.Errorf("revoked: %v, %v", err, f.Health(t.Context()))
	}
	f.Restore()
	if _, err := f.Topology(t.Context(), inputFor("a")); err != nil || f.Health(t.Context()) != nil {
		t.Errorf("restored: %v, %v", err, f.Health(t.Context()))
	}
}

func TestHealthIsTheProviders(t *testing.T) {
	f := NewFaulty(unhealthyProvider{})
	if err := f.Health(t.Context()); !errors.Is(err, ErrServer) {
		t.Error(err)
	}
}

type unhealthyProvider struct{ goodProvider }

func (unhealthyProvider) Health(context.Context) error { return ErrServer }

// A plane calls providers through a guard; this is what it makes of the worst faults.
func TestFaultsBehindAGuard(t *testing.T) {
	f := NewFaulty(goodProvider{})
	guarded := func(timeout time.Duration) *guard.Guard {
		g, err := guard.New(t.Context(), f, timeout)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := guarded(time.Second)
	f.QueueFaults(Panic("oh"), HangForever(), nil)
	if _, err := g.Topology(t.Context(), inputFor("a")); !errors.Is(err, guard.ErrPanicked) || !strings.Contains(err.Error(), "oh") {
		t.Errorf("panic: %v", err)
	}
	if _, err := g.Topology(t.Context(), inputFor("a")); !errors.Is(err, guard.ErrTimedOut) {
		t.Errorf("hanging: %v", err)
	}
	patient := guarded(time.Minute)
	if _, err := patient.Topology(t.Context(), inputFor("a")); err != nil {
		t.Errorf("after all: %v", err)
	}
	f.Release()
	f.Release() // twice does no harm
	f.QueueFaults(HangForever(), Hang())
	for range 2 {
		if _, err := patient.Topology(t.Context(), inputFor("a")); !errors.Is(err, errReleased) {
			t.Errorf("released: %v", err)
		}
	}
}

func TestUseMemory(t *testing.T) {
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	const size = 64 << 20
	err := UseMemory(size)(Call{Context: t.Context(), Do: func() { runtime.ReadMemStats(&during) }})
	if err != nil || during.HeapAlloc < before.HeapAlloc+size/2 {
		t.Errorf("%d MiB more, %v", (int64(during.HeapAlloc)-int64(before.HeapAlloc))>>20, err)
	}
}

func TestFaultyIsForMany(t *testing.T) {
	f := NewFaulty(goodProvider{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			switch {
			case i%5 == 0:
				f.QueueFaults(Fail(ErrServer))
			case i%7 == 0:
				f.SetClusterFault("b", Fail(ErrServer))
			}
			_, _ = f.Topology(t.Context(), inputFor("a"))
		})
	}
	wg.Wait()
	if f.Calls("a") != 20 {
		t.Errorf("%d calls", f.Calls("a"))
	}
}
