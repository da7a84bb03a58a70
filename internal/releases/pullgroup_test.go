package releases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// caller is the outcome for one of many callers that want the same.
type caller struct {
	got pullResult
	err error
}

// callers starts so many callers, and returns a function that waits for their outcomes.
func callers(ctx context.Context, n int, f *pullGroup, key pullKey, get func() (pullResult, error)) func() []caller {
	out := make([]caller, n)
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].got, out[i].err = f.do(ctx, key, get) })
	}
	synctest.Wait() // all of them wait for one
	return func() []caller { all.Wait(); return out }
}

func TestPullGroup(t *testing.T) {
	errBad := errors.New("bad")
	for what, want := range map[string]caller{"good": {pullResult{digest: "d"}, nil}, "bad": {pullResult{}, errBad}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f pullGroup
				for round := range 2 { // as if nothing had been before
					gate, n := make(chan struct{}), 0
					get := func() (pullResult, error) { n++; <-gate; return want.got, want.err }
					wait := callers(t.Context(), 20, &f, pullKey{tag: "a"}, get)
					if got, err := f.do(t.Context(), pullKey{tag: "b"}, func() (pullResult, error) { return pullResult{digest: "b"}, nil }); got.digest != "b" || err != nil {
						t.Errorf("what is not the same: %v, %v", got, err)
					}
					close(gate)
					for i, c := range wait() {
						if c != want {
							t.Errorf("round %d, caller %d: %v", round, i, c)
						}
					}
					if n != 1 || len(f.inFlight) != 0 {
						t.Errorf("round %d: got %d times; %d are left", round, n, len(f.inFlight))
					}
				}
			})
		})
	}
}

// A leader that is cancelled leaves the pull to one of those who wait for it.
func TestFlightLeaderLeaves(t *testing.T) {
	for what, leave := range map[string]func(context.CancelFunc){"cancelled": func(c context.CancelFunc) { c() }, "panics": func(context.CancelFunc) { panic("here") }} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f pullGroup
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				gate := make(chan struct{})
				go func() {
					defer func() { _ = recover() }()
					_, err := f.do(ctx, pullKey{}, func() (pullResult, error) { <-gate; leave(cancel); return pullResult{}, ctx.Err() })
					if !errors.Is(err, context.Canceled) {
						t.Errorf("the first: %v", err)
					}
				}()
				synctest.Wait()
				n := 0
				wait := callers(t.Context(), 20, &f, pullKey{}, func() (pullResult, error) { n++; return pullResult{digest: "d"}, nil })
				close(gate)
				for i, c := range wait() {
					if c.got.digest != "d" || c.err != nil {
						t.Errorf("caller %d: %v", i, c)
					}
				}
				if n == 0 || len(f.inFlight) != 0 {
					t.Errorf("got %d times; %d are left", n, len(f.inFlight))
				}
			})
		})
	}
}

// That the namespace of one has used up its quota is no error for those who wait for it.
func TestFlightLeaderMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f pullGroup
		gate, first := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := f.do(t.Context(), pullKey{}, func() (pullResult, error) { <-gate; return pullResult{}, fmt.Errorf("x: %w", errQuotaExceeded) })
			first <- err
		}()
		synctest.Wait()
		wait := callers(t.Context(), 3, &f, pullKey{}, func() (pullResult, error) { return pullResult{digest: "d"}, nil })
		close(gate)
		for i, c := range wait() {
			if c.got.digest != "d" || c.err != nil {
				t.Errorf("caller %d: %v", i, c)
			}
		}
		if err := <-first; !errors.Is(err, errQuotaExceeded) {
			t.Errorf("the first: %v", err)
		}
	})
}

// Whoever waits does so only until its context ends.
func TestFlightWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f pullGroup
		gate := make(chan struct{})
		wait := callers(t.Context(), 1, &f, pullKey{}, func() (pullResult, error) { <-gate; return pullResult{digest: "d"}, nil })
		ctx, cancel := context.WithCancel(t.Context())
		impatient := callers(ctx, 3, &f, pullKey{}, nil)
		cancel()
		for _, c := range impatient() {
			if !errors.Is(c.err, context.Canceled) {
				t.Errorf("%v", c)
			}
		}
		close(gate)
		if c := wait()[0]; c.err != nil || c.got.digest != "d" {
			t.Errorf("%v", c)
		}
	})
}
