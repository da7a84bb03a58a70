package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// fastTiming is timing for tests: hardly any back-off, and ample limits for slow machines.
var fastTiming = timing{
	backoff:        backoff{initial: time.Millisecond, max: 4 * time.Millisecond, resetAfter: time.Hour},
	cleanupTimeout: 10 * time.Second,
	logTimeout:     10 * time.Second,
}

const (
	longGrace = 30 * time.Second // a grace that is used up only when a test fails
	never     = time.Hour        // no test waits for it
)

// stateRecorder records the states a process goes through.
type stateRecorder struct {
	states     []State    // to be read after the end
	busy       sync.Mutex // held during a call
	concurrent atomic.Bool
}

func (d *stateRecorder) record(s State) {
	if !d.busy.TryLock() {
		d.concurrent.Store(true)
		return
	}
	defer d.busy.Unlock()
	d.states = append(d.states, s)
}

// startForTest starts spec and makes sure that it is gone after the test.
func startForTest(t *testing.T, spec Spec, tm timing) (*Process, *stateRecorder) {
	t.Helper()
	f := NewForker()
	t.Cleanup(f.Close)
	d := &stateRecorder{}
	p := start(f, spec, d.record, tm)
	t.Cleanup(p.Kill)
	return p, d
}

func waitForFirstExit(t *testing.T, p *Process) Exit {
	t.Helper()
	processtest.Eventually(t, "it has ended", func() bool { return p.State().LastExit != nil })
	return *p.State().LastExit
}

func TestRestartsWithBackoff(t *testing.T) {
	p, d := startForTest(t, testSpec(t.TempDir(), "say", "3", "so long"), fastTiming)
	processtest.Eventually(t, "3 restarts", func() bool { return p.State().Restarts >= 3 })
	p.Kill()
	var waits []time.Duration
	for i, s := range d.states {
		// Each start and each end is reported once, and they alternate.
		if want := i / 2; s.Restarts != want && s.LastExit != nil {
			t.Errorf("change %d: %d restarts, want %d", i, s.Restarts, want)
		}
		if i%2 == 0 && s.PID != 0 && (!s.NextStart.IsZero() || s.StartedAt.IsZero()) {
			t.Errorf("change %d: runs with NextStart %v, StartedAt %v", i, s.NextStart, s.StartedAt)
		}
		if i%2 == 1 && i < 6 {
			if s.PID != 0 || s.LastExit.Code != 3 {
				t.Errorf("change %d: PID %d, exit %v", i, s.PID, s.LastExit)
			}
			next := d.states[i+1]
			if next.StartedAt.Before(s.NextStart) {
				t.Errorf("start %d came %s early", next.Restarts, s.NextStart.Sub(next.StartedAt))
			}
			waits = append(waits, next.StartedAt.Sub(s.LastExit.At))
		}
	}
	if len(waits) != 3 || waits[0] < time.Millisecond || waits[1] < 2*time.Millisecond || waits[2] < 4*time.Millisecond {
		t.Errorf("waited %v, want at least 1ms, 2ms, 4ms", waits)
	}
	if last := p.State(); last.PID != 0 || !last.NextStart.IsZero() || d.concurrent.Load() {
		t.Errorf("after the end: %+v, clash of changes: %t", last, d.concurrent.Load())
	}
}

func TestBackoff(t *testing.T) {
	b := defaultTiming.backoff
	var got []string
	var delay time.Duration
	for range 7 {
		delay = b.next(delay, b.resetAfter-1)
		got = append(got, delay.String())
	}
	got = append(got, b.next(delay, b.resetAfter).String())
	want := []string{"500ms", "1s", "2s", "4s", "8s", "10s", "10s", "500ms"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStartsAsSpecified(t *testing.T) {
	t.Setenv("POLDER_TEST_SECRET", "of the supervisor")
	spec := testSpec(t.TempDir(), "show", "a", "b")
	spec.Dir = t.TempDir()
	p, _ := startForTest(t, spec, fastTiming)
	e := waitForFirstExit(t, p)
	want := []string{"argv [show a b]", "dir " + spec.Dir, `stdin ""`, "leads true", fmt.Sprint("env ", spec.Env)}
	if diff := cmp.Diff(want, e.Output); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(spec.Log.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v, %v", info, err)
	}
}

func TestExitHasLastLines(t *testing.T) {
	args := []string{"7"}
	for i := range 30 {
		args = append(args, fmt.Sprintf("line %d", i))
	}
	long := strings.Repeat("x", 499) + "é is cut in two"
	spec := testSpec(t.TempDir(), "say", append(args, "", long)...)
	p, _ := startForTest(t, spec, timing{
		backoff: backoff{initial: never, max: never}, cleanupTimeout: fastTiming.cleanupTimeout, logTimeout: fastTiming.logTimeout,
	})
	e := waitForFirstExit(t, p)
	var want []string
	for i := 11; i < 30; i++ {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	want = append(want, long[:499])
	if diff := cmp.Diff(want, e.Output); diff != "" {
		t.Error(diff)
	}
	if e.Code != 7 || e.Signal != "" || e.At.IsZero() {
		t.Errorf("exit %+v", e)
	}
	p.Kill()
	if b, _ := os.ReadFile(spec.Log.Path); !strings.HasSuffix(string(b), long+"\n") {
		t.Errorf("the log does not end with the whole last line: %q", b)
	}
}

func TestExitString(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for want, e := range map[string]Exit{
		"exited with code 1 at 2026-01-02T03:04:05Z: last":       {Code: 1, At: at, Output: []string{"first", "last"}},
		"exited with code 0 at 2026-01-02T03:04:05Z":             {At: at},
		"was ended by SIGKILL at 2026-01-02T03:04:05Z":           {Code: 137, Signal: "SIGKILL", At: at},
		"could not be started at 2026-01-02T03:04:05Z: no space": {Code: -1, At: at, Output: []string{"no space"}},
	} {
		if diff := cmp.Diff(want, e.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMissingProgramIsRetried(t *testing.T) {
	spec := testSpec(t.TempDir(), "say", "0", "here I am")
	exe := spec.Path
	spec.Path = filepath.Join(t.TempDir(), "program")
	p, _ := startForTest(t, spec, fastTiming)
	e := waitForFirstExit(t, p)
	if e.Code != -1 || len(e.Output) != 1 || !strings.Contains(e.Output[0], spec.Path) {
		t.Errorf("exit %+v", e)
	}
	if s := p.State(); s.PID != 0 || !s.StartedAt.IsZero() {
		t.Errorf("state of what never ran: %+v", s)
	}
	if err := os.Symlink(exe, spec.Path); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it starts once it is there", func() bool { return p.State().LastExit.Code == 0 })
}

func TestMissingDirectoryIsNamed(t *testing.T) {
	spec := testSpec(t.TempDir(), "say", "0")
	spec.Dir = filepath.Join(t.TempDir(), "missing")
	p, _ := startForTest(t, spec, fastTiming)
	if e := waitForFirstExit(t, p); e.Code != -1 || !strings.Contains(e.String(), spec.Dir) {
		t.Errorf("exit %v", e)
	}
}

func TestForker(t *testing.T) {
	t.Run("starts nothing after Close", func(t *testing.T) {
		f := NewForker()
		f.Close()
		f.Close()
		if _, err := f.start(testSpec(t.TempDir(), "say", "0"), nil, nil); !errors.Is(err, errForkerClosed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("survives the thread of the caller", func(t *testing.T) { survivesCaller(t) })
}

// exists says whether there is such a process, be it a zombie.
func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return !errors.Is(err, fs.ErrNotExist) || unix.Kill(pid, 0) == nil
}
