package fairness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// acquireAll acquires a slot of each key, and returns what releases them.
func acquireAll(t *testing.T, s *Slots[string], keys []string) (releases []func()) {
	t.Helper()
	for _, key := range keys {
		release, err := s.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("key %q: %v", key, err)
		}
		releases = append(releases, release)
	}
	return releases
}

func TestSlots(t *testing.T) {
	const patience = time.Minute // of the caller
	for name, c := range map[string]struct {
		slots  *Slots[string]
		before []string // keys that have a slot each
		key    string
		want   error
		after  time.Duration
	}{
		"nobody has one":                     {&Slots[string]{PerKey: 1, Total: 1}, nil, "a", nil, 0},
		"no limits":                          {&Slots[string]{}, []string{"a", "a", ""}, "a", nil, 0},
		"the last one of the key":            {&Slots[string]{PerKey: 2}, []string{"a"}, "a", nil, 0},
		"too many of the key":                {&Slots[string]{PerKey: 2}, []string{"a", "a"}, "a", ErrKeyBusy, 0},
		"too many of the key, after a while": {&Slots[string]{PerKey: 2, Wait: time.Second}, []string{"a", "a"}, "a", ErrKeyBusy, time.Second},
		"too many of another key":            {&Slots[string]{PerKey: 2}, []string{"a", "a"}, "b", nil, 0},
		"the zero key has no limit":          {&Slots[string]{PerKey: 1}, []string{"", ""}, "", nil, 0},
		"too many of all":                    {&Slots[string]{PerKey: 2, Total: 3}, []string{"a", "a", "b"}, "c", ErrTotalBusy, patience},
		"too many of all, of the zero key":   {&Slots[string]{Total: 2}, []string{"", ""}, "", ErrTotalBusy, patience},
		"too many of both":                   {&Slots[string]{PerKey: 1, Total: 1}, []string{"a"}, "a", ErrKeyBusy, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				releases := acquireAll(t, c.slots, c.before)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				release, err := c.slots.Acquire(ctx, c.key)
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || time.Since(start) != c.after {
					t.Errorf("%v after %s, want %v after %s", err, time.Since(start), c.want, c.after)
				}
				if errors.Is(err, ErrTotalBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v does not say that the context has ended", err)
				}
				if err == nil {
					release()
				}
				for _, release := range releases {
					release()
				}
				// All are free again: as many as before can be acquired at once, and nobody is remembered.
				for _, release := range acquireAll(t, c.slots, c.before) {
					release()
				}
				if len(c.slots.byKey) != 0 || len(c.slots.total) != 0 {
					t.Errorf("%v and %d slots are remembered", c.slots.byKey, len(c.slots.total))
				}
			})
		})
	}
}

// Who is released makes room for one that waits, of the key or of all.
func TestSlotsAreHandedOver(t *testing.T) {
	for name, s := range map[string]*Slots[string]{"of the key": {PerKey: 1, Wait: time.Hour}, "of all": {Total: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := acquireAll(t, s, []string{"a"})[0]
				waiting := make(chan error)
				go func() { _, err := s.Acquire(t.Context(), "a"); waiting <- err }()
				synctest.Wait()
				select {
				case err := <-waiting:
					t.Fatalf("two have it: %v", err)
				default:
				}
				first()
				if err := <-waiting; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Who waits for its key holds no slot of all.
func TestSlotsOfTheKeyComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Slots[string]{PerKey: 1, Wait: time.Hour, Total: 2}
		first := acquireAll(t, s, []string{"a"})[0]
		go func() {
			if release, err := s.Acquire(t.Context(), "a"); err == nil {
				release()
			}
		}()
		synctest.Wait()
		start := time.Now()
		acquireAll(t, s, []string{"b"})
		if time.Since(start) != 0 {
			t.Errorf("another key waited for %s", time.Since(start))
		}
		first()
	})
}

// A caller that goes away while it waits for its key is told so, and not that the key is busy.
func TestSlotsOfACallerThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Slots[string]{PerKey: 1, Wait: time.Hour}
		acquireAll(t, s, []string{"a"})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if _, err := s.Acquire(ctx, "a"); !errors.Is(err, context.Canceled) || errors.Is(err, ErrKeyBusy) {
			t.Errorf("%v", err)
		}
		if s.byKey["a"].users != 1 {
			t.Errorf("%d users", s.byKey["a"].users)
		}
	})
}
