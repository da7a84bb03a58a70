package fairness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &Limiter{PerNamespace: 2}
		take := func(namespace string) func() {
			t.Helper()
			done, err := turns.Acquire(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		first, second := take("a"), take("a")
		if _, err := turns.Acquire(t.Context(), "a"); !errors.Is(err, ErrBusy) {
			t.Errorf("the third: %v", err)
		}
		take("b")()
		for range 5 {
			take("") // needs no slot, and releases none
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := turns.Acquire(gone, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone: %v", err)
		}
		waiting := make(chan func())
		go func() {
			done, err := turns.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			waiting <- done
		}()
		synctest.Wait()
		first()
		(<-waiting)()
		second()
		if len(turns.slots.byKey) != 0 {
			t.Errorf("%v is remembered", turns.slots.byKey)
		}
	})
}

// However many callers of a namespace come, at most MaxWaiting of them wait.
func TestFewWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &Limiter{PerNamespace: 1, MaxWaiting: 1}
		first, err := turns.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() { _, err := turns.Acquire(t.Context(), "a"); waited <- err }()
		synctest.Wait()
		start := time.Now()
		if _, err := turns.Acquire(t.Context(), "a"); !errors.Is(err, ErrBusy) || time.Since(start) != 0 {
			t.Errorf("the third: %v after %s", err, time.Since(start))
		}
		other, err := turns.Acquire(t.Context(), "b")
		if err != nil {
			t.Errorf("another namespace: %v", err)
		}
		if err := <-waited; !errors.Is(err, ErrBusy) || time.Since(start) != maxWait {
			t.Errorf("the second: %v after %s", err, time.Since(start))
		}
		first()
		other()
		if len(turns.slots.byKey) != 0 {
			t.Errorf("%v is remembered", turns.slots.byKey)
		}
	})
}
