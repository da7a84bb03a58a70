package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeComponent is a component whose behaviour a test can choose.
type fakeComponent struct {
	name   string
	calls  *callLog
	ready  chan struct{}
	start  time.Duration                   // until it is ready
	run    func(ctx context.Context) error // after it is ready; nil: waits for the end of ctx
	stop   time.Duration                   // from the end of ctx to its return
	health error
}

// callLog records what happens, in order.
type callLog struct {
	mu    sync.Mutex
	lines []string
}

func (d *callLog) add(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, s)
}

func (d *callLog) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (p *fakeComponent) Name() string                  { return p.name }
func (p *fakeComponent) Ready() <-chan struct{}        { return p.ready }
func (p *fakeComponent) Healthy(context.Context) error { return p.health }

func (p *fakeComponent) Run(ctx context.Context) error {
	p.calls.add("start " + p.name)
	select {
	case <-time.After(p.start):
	case <-ctx.Done():
		return nil
	}
	close(p.ready)
	if p.run != nil {
		if err := p.run(ctx); err != nil || ctx.Err() == nil {
			return err
		}
	}
	<-ctx.Done()
	time.Sleep(p.stop)
	p.calls.add("stop " + p.name)
	return nil
}

type fixture struct {
	calls   callLog
	changes [][]Status
}

func (b *fixture) newComponent(name string) *fakeComponent {
	return &fakeComponent{name: name, calls: &b.calls, ready: make(chan struct{})}
}

func (b *fixture) supervise(stages ...Stage) *Supervisor {
	return New(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), OnChange: func(s []Status) { b.changes = append(b.changes, s) }}, stages...)
}

func TestStartsInOrderAndStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		store, api, a1, a2 := b.newComponent("store"), b.newComponent("api"), b.newComponent("a1"), b.newComponent("a2")
		store.start, a1.start, a1.stop = time.Second, time.Second, time.Second
		s := b.supervise(Stage{store}, Stage{api}, Stage{a1, a2})
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		err := s.Run(ctx, func() {
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("ready after %s; parts of one stage must start together", took)
			}
			for _, st := range s.Status() {
				if st.State != Ready || s.Check(t.Context(), st.Name) != nil {
					t.Errorf("%s is %s, check %v", st.Name, st.State, s.Check(t.Context(), st.Name))
				}
			}
			cancel()
		})
		if err != nil {
			t.Errorf("Run() = %v", err)
		}
		slices.Sort(b.calls.lines[2:4]) // a1 and a2 start in any order
		want := []string{"start store", "start api", "start a1", "start a2", "stop a2", "stop a1", "stop api", "stop store"}
		if diff := cmp.Diff(want, b.calls.lines); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		for _, st := range s.Status() {
			if st.State != Stopped {
				t.Errorf("%s ends as %s", st.Name, st.State)
			}
		}
	})
}

func TestFailureEndsAllWithItsReason(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		run  func(context.Context) error
		want string
	}{
		"error":              {func(context.Context) error { return boom }, "component b: boom"},
		"return without one": {func(context.Context) error { return nil }, "component b: ended without being asked to"},
		"panic":              {func(context.Context) error { panic("oh") }, "component b: panic: oh"},
	}
	for name, tt := range tests {
		for _, when := range []string{"at once", "later"} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := &fixture{}
					first, second, third := b.newComponent("a"), b.newComponent("b"), b.newComponent("c")
					second.run = func(ctx context.Context) error {
						if when == "later" {
							time.Sleep(time.Hour)
						}
						return tt.run(ctx)
					}
					s := b.supervise(Stage{first}, Stage{second}, Stage{third})
					err := s.Run(t.Context(), func() {})
					var ce *ComponentError
					if !errors.As(err, &ce) || err.Error() != tt.want {
						t.Errorf("Run() = %v, want %s", err, tt.want)
					}
					if !slices.Contains(b.calls.lines, "stop a") {
						t.Errorf("the others were not stopped: %v", b.calls.lines)
					}
					if err := s.Check(t.Context(), "b"); err == nil || !strings.HasPrefix(err.Error(), "failed: ") {
						t.Errorf("Check(b) = %v", err)
					}
				})
			})
		}
	}
}

func TestStopWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		slow, never := b.newComponent("slow"), b.newComponent("never")
		slow.start = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := b.supervise(Stage{slow}, Stage{never})
		if err := s.Run(ctx, func() { t.Error("never ready") }); err != nil {
			t.Errorf("Run() = %v", err)
		}
		if diff := cmp.Diff([]string{"start slow"}, b.calls.lines); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestNotReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		slow := b.newComponent("slow")
		slow.start = time.Hour
		err := b.supervise(Stage{slow}).Run(t.Context(), func() { t.Error("never ready") })
		if err == nil || err.Error() != "component slow: not ready after 2m0s" {
			t.Errorf("Run() = %v", err)
		}
	})
}

// TestStuckComponent checks that a component that does not stop is named, does not keep the store from stopping,
// and does not delay the end of the process by more than its time.
func TestStuckComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		store, stuck, second, third := b.newComponent("store"), b.newComponent("stuck"), b.newComponent("second"), b.newComponent("third")
		stuck.stop, second.stop, third.stop = time.Minute, time.Minute, time.Minute // together they use up all the time
		store.stop = 300 * time.Millisecond
		s := b.supervise(Stage{store}, Stage{third}, Stage{second}, Stage{stuck})
		ctx, cancel := context.WithCancel(t.Context())
		var asked time.Time
		err := s.Run(ctx, func() { asked = time.Now(); cancel() })
		if !errors.Is(err, ErrStopTimeout) || !strings.Contains(err.Error(), "stuck") {
			t.Errorf("Run() = %v", err)
		}
		if took := time.Since(asked); took > 10*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if lines := b.calls.read(); !slices.Contains(lines, "stop store") {
			t.Errorf("the store was not stopped: %v", lines)
		}
		time.Sleep(time.Hour) // lets the stuck one end, as synctest wants
	})
}

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		sick := b.newComponent("sick")
		sick.health = errors.New("feels bad")
		hangs := &hangingComponent{fakeComponent: b.newComponent("hangs"), release: make(chan struct{})}
		s := b.supervise(Stage{sick, hangs})
		if err := s.Check(t.Context(), "sick"); err == nil || err.Error() != "waiting" {
			t.Errorf("before the start: %v", err)
		}
		if err := s.Check(t.Context(), "nobody"); err == nil {
			t.Error("an unknown component is well")
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Run(ctx, func() {
			defer cancel()
			if err := s.Check(t.Context(), "sick"); err == nil || err.Error() != "feels bad" {
				t.Errorf("Check(sick) = %v", err)
			}
			begin := time.Now()
			if err := s.Check(t.Context(), "hangs"); err == nil || time.Since(begin) > 5*time.Second {
				t.Errorf("Check(hangs) = %v after %s", err, time.Since(begin))
			}
			close(hangs.release)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// hangingComponent does not return from its health check.
type hangingComponent struct {
	*fakeComponent
	release chan struct{}
}

func (h *hangingComponent) Healthy(context.Context) error {
	<-h.release
	return nil
}

func TestChangesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{}
		ctx, cancel := context.WithCancel(t.Context())
		if err := b.supervise(Stage{b.newComponent("a")}).Run(ctx, cancel); err != nil {
			t.Fatal(err)
		}
		var got []State
		for _, c := range b.changes {
			got = append(got, c[0].State)
		}
		if diff := cmp.Diff([]State{Starting, Ready, Stopping, Stopped}, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}
