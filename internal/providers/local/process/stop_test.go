package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func TestStopSendsSIGTERM(t *testing.T) {
	spec := testSpec(t.TempDir(), "answer")
	p, _ := startForTest(t, spec, fastTiming)
	processtest.Eventually(t, "ready", func() bool { return slices.Contains(readLogLines(spec.Log), "ready") })
	p.Stop(longGrace)
	if s := p.State(); s.PID != 0 || s.Restarts != 0 || s.LastExit.Signal != "SIGTERM" || s.LastExit.Code != 128+15 {
		t.Errorf("state %+v, exit %v", s, s.LastExit)
	}
	p.Stop(longGrace) // once more makes no difference
}

func TestStopEscalates(t *testing.T) {
	spec := testSpec(t.TempDir(), "stubborn")
	p, _ := startForTest(t, spec, fastTiming)
	pid := readyPID(t, spec.Log)
	begin := time.Now()
	p.Stop(100 * time.Millisecond)
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("no grace: stopped after %s", took)
	}
	if s := p.State(); s.LastExit.Signal != "SIGKILL" || exists(pid) {
		t.Errorf("exit %v, still exists: %t", s.LastExit, exists(pid))
	}
}

func TestKillDoesNotWait(t *testing.T) {
	spec := testSpec(t.TempDir(), "answer")
	p, _ := startForTest(t, spec, fastTiming)
	processtest.Eventually(t, "ready", func() bool { return slices.Contains(readLogLines(spec.Log), "ready") })
	p.Kill()
	if e := p.State().LastExit; e.Signal != "SIGKILL" {
		t.Errorf("exit %v, though SIGTERM would have been enough", e)
	}
}

func TestStopTakesGrandchildren(t *testing.T) {
	spec := testSpec(t.TempDir(), "family")
	p, _ := startForTest(t, spec, fastTiming)
	pid := readyPID(t, spec.Log)
	p.Stop(longGrace) // the grandchild ignores SIGTERM, but the child does not
	if processtest.IsAlive(pid) {
		t.Error("the grandchild still runs")
	}
}

func TestOrphansThatFallToUsAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	spec := testSpec(t.TempDir(), "family")
	p, _ := startForTest(t, spec, fastTiming)
	pid := readyPID(t, spec.Log)
	p.Kill()
	if exists(pid) {
		t.Error("the grandchild is a zombie")
	}
}

func TestEndOfProgramTakesGrandchildren(t *testing.T) {
	spec := testSpec(t.TempDir(), "family")
	p, _ := startForTest(t, spec, timing{backoff: backoff{initial: never}, cleanupTimeout: fastTiming.cleanupTimeout, logTimeout: fastTiming.logTimeout})
	pid := readyPID(t, spec.Log)
	if err := unix.Kill(p.State().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitForFirstExit(t, p)
	if processtest.IsAlive(pid) {
		t.Error("the grandchild outlives the run it belongs to")
	}
}

func TestStopIsNotHeldUpByThePipe(t *testing.T) {
	spec := testSpec(t.TempDir(), "orphan")
	tm := fastTiming
	tm.cleanupTimeout = 50 * time.Millisecond
	p, _ := startForTest(t, spec, tm)
	pid := readyPID(t, spec.Log)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop(never)
	}()
	inTime := true
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		inTime = false
	}
	if !processtest.IsAlive(pid) {
		t.Error("the orphan should hold the pipe")
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	<-stopped
	if !inTime {
		t.Error("Stop waited for the pipe")
	}
	processtest.Eventually(t, "the orphan is gone", func() bool { return !processtest.IsAlive(pid) })
}

func TestStopDuringBackoff(t *testing.T) {
	for name, stop := range map[string]func(*Process){
		"Stop": func(p *Process) { p.Stop(never) },
		"Kill": (*Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := startForTest(t, testSpec(t.TempDir(), "say", "0"), timing{backoff: backoff{initial: never}, cleanupTimeout: never, logTimeout: never})
			processtest.Eventually(t, "it backs off", func() bool { return !p.State().NextStart.IsZero() })
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				stop(p)
			}()
			processtest.Eventually(t, "it returns", func() bool { return isClosed(stopped) && isClosed(p.Done()) })
			if s := p.State(); !s.NextStart.IsZero() || s.Restarts != 0 {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	for range 5 {
		p, d := startForTest(t, testSpec(t.TempDir(), "say", "1", "hm"), fastTiming)
		processtest.Eventually(t, "a restart", func() bool { return p.State().Restarts > 0 })
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { p.Stop(time.Millisecond) })
			wg.Go(p.Kill)
			wg.Go(func() {
				for !isClosed(p.Done()) {
					_ = p.State()
				}
			})
		}
		wg.Wait()
		if s := p.State(); s.PID != 0 || d.concurrent.Load() {
			t.Errorf("state %+v, clash of changes: %t", s, d.concurrent.Load())
		}
	}
}

func TestProgramDiesWithSupervisor(t *testing.T) {
	dir := t.TempDir()
	spec := testSpec(dir, "supervisor", dir)
	c := exec.Command(spec.Path, dir)
	c.Env = spec.Env
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := readyPID(t, logfile.File{Path: filepath.Join(dir, "log")})
	if !processtest.IsAlive(pid) {
		t.Error("the program does not run")
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	processtest.Eventually(t, "the program is gone", func() bool { return !processtest.IsAlive(pid) })
}

// survivesCaller shows that a child does not die with the thread on which it was asked for.
func survivesCaller(t *testing.T) {
	f := NewForker()
	defer f.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var child *os.Process
	var tid int
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		tid = unix.Gettid()
		child, err = f.start(testSpec(t.TempDir(), "answer"), null, w)
	}()
	<-done
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Kill()
		_, _ = child.Wait()
	}()
	processtest.Eventually(t, "the thread is gone", func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		return err != nil || tid == os.Getpid() // the main thread never ends
	})
	buf := make([]byte, 64)
	for _, want := range []string{"ready\n", "answer\n"} {
		_ = r.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, err := r.Read(buf)
		if string(buf[:n]) != want {
			t.Fatalf("read %q, %v, want %q", buf[:n], err, want)
		}
		_ = child.Signal(unix.SIGUSR1)
	}
}
