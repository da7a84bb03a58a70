package lifecycle

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxLogSize is the size beyond which the log of earlier runs is renamed at a start.
const maxLogSize = 10 << 20

// UpOptions say how to start a plane.
type UpOptions struct {
	Binary  string   // path of polderd
	Listen  string   // empty means as last time, or polderd's default
	REST    string   // where the API for customers is served; empty means as last time, or not at all
	Stacks  string   // default source of cluster stacks; empty means as last time, or none
	Args    []string // further flags for polderd
	Timeout time.Duration
	// Progress is called with each status that differs from the one before; optional.
	Progress func(Report)
}

// Up starts the plane, or waits for one that is starting, and returns when it is ready. If one is ready already,
// started is false.
func (p *Plane) Up(ctx context.Context, o UpOptions) (r Report, started bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if r, err = p.awaitEndOfStop(ctx); err != nil {
		return r, false, err
	}
	var child *childProcess
	_, missing := os.Stat(p.dir)
	if !r.Running {
		if child, err = p.startProcess(o, r); err != nil {
			return r, false, err
		}
	}
	r, err = p.awaitReady(ctx, child, o.Progress)
	if errors.Is(missing, os.ErrNotExist) && exit.Code(err) == exit.Usage {
		err = errors.Join(err, p.removeEmpty())
	}
	return r, child != nil, err
}

// removeEmpty removes a directory that has nothing but a log of why it is so: flags that cannot be must not leave one.
func (p *Plane) removeEmpty() error {
	files, err := os.ReadDir(p.dir)
	if err != nil || len(files) != 1 || files[0].Name() != filepath.Base(p.LogFile()) {
		return err
	}
	return errors.Join(os.Remove(p.LogFile()), os.Remove(p.dir))
}

// answerTimeout is how long the API of a plane that says it is ready may be silent until that is an error.
const answerTimeout = 20 * time.Second

// awaitEndOfStop waits until the plane is not ending, and returns its report. A process that was killed has its lock,
// and a status that says ready, until the kernel has taken all of its memory away: only its API tells.
func (p *Plane) awaitEndOfStop(ctx context.Context) (r Report, err error) {
	patience, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		var err error
		if r, err = p.Inspect(); err != nil || !r.Running {
			return true, err
		}
		switch r.Status.Phase {
		case status.Stopping:
			return false, nil
		case status.Ready:
		default:
			return true, nil // it is starting
		}
		if _, err = p.FailingComponents(ctx); err != nil && patience.Err() != nil {
			return false, exit.Errorf(exit.NotReady,
				"polderd runs, process %d, but its API does not answer: %w; see %s, or end it with: polder down --data-dir %s",
				r.Status.PID, err, p.LogFile(), p.dir)
		}
		return err == nil, nil
	})
	return r, err
}

// awaitReady waits until the plane is ready, whoever started it. child is nil if we did not.
func (p *Plane) awaitReady(ctx context.Context, child *childProcess, progress func(Report)) (Report, error) {
	var r Report
	var shown string
	err := poll(ctx, func() (bool, error) {
		// Before Inspect: if the child ended because another polderd has the lock, Inspect must see that one.
		ended, exitErr := child.exitResult()
		var err error
		if r, err = p.Inspect(); err != nil {
			return false, err
		}
		if ended && exit.Code(exitErr) == exit.InUse {
			child = nil // somebody else was faster; theirs is as good as ours
		} else if ended {
			return false, exitErr
		}
		if child == nil && !r.Running {
			return false, exit.Errorf(exit.Failure, "polderd ended while it was waited for; see %s", p.LogFile())
		}
		// While none runs, the status file is of an earlier run.
		if now := fmt.Sprint(r.Status.Components); progress != nil && r.Running && now != shown {
			progress(r)
			shown = now
		}
		return r.Running && r.Status.Phase == status.Ready, nil
	})
	if errors.Is(err, context.Canceled) {
		return r, exit.Errorf(exit.Failure,
			"interrupted; polderd goes on starting in the background, see: polder status --data-dir %s", p.dir)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return r, exit.Errorf(exit.Timeout,
			"polderd was not ready in time; it goes on starting, see: polder status --data-dir %s, and %s", p.dir, p.LogFile())
	}
	return r, err
}

// childProcess is a polderd that we started.
type childProcess struct {
	done chan struct{}
	err  error // set before done closes
}

// exitResult says whether the child has ended, and why.
func (c *childProcess) exitResult() (bool, error) {
	if c == nil {
		return false, nil
	}
	select {
	case <-c.done:
		return true, c.err
	default:
		return false, nil
	}
}

// hostOf is ADDRESS:PORT of a URL, or nothing.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func (p *Plane) startProcess(o UpOptions, last Report) (*childProcess, error) {
	if err := datadir.Prepare(p.dir); err != nil {
		return nil, err
	}
	log, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	offset, err := log.Seek(0, 2)
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--data-dir", p.dir}, o.Args...)
	if listen := cmp.Or(o.Listen, strings.TrimPrefix(last.Status.Address, "https://")); listen != "" {
		args = append(args, "--listen", listen)
	}
	if rest := cmp.Or(o.REST, hostOf(last.Status.REST)); rest != "" {
		args = append(args, "--rest-listen", rest)
	}
	if stacks := cmp.Or(o.Stacks, last.Status.Stacks); stacks != "" {
		args = append(args, "--stack-source", stacks)
	}
	cmd := exec.Command(o.Binary, args...) //nolint:gosec // polderd beside us; it outlives us
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	cmd.Dir = p.dir
	if err := cmd.Start(); err != nil {
		return nil, exit.Errorf(exit.Failure, "starting %s: %w; polder and polderd belong into one directory", o.Binary, err)
	}
	c := &childProcess{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = cmd.Wait() // the exit code says it all
		c.err = exit.Errorf(exitCodeOf(cmd.ProcessState.ExitCode()), "%s", p.exitMessage(offset))
	}()
	return c, nil
}

// exitCodeOf maps an end by signal, and a crash, to a plain failure, and polderd's code for bad flags to polder's.
func exitCodeOf(code int) int {
	switch {
	case code <= 0 || code == exit.Usage: // 2 is the Go runtime's here
		return exit.Failure
	case code == exit.DaemonUsage:
		return exit.Usage
	}
	return code
}

func (p *Plane) openLog() (*os.File, error) {
	path := p.LogFile()
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("setting the old log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, exit.Errorf(exit.DataDir, "data directory %s is not writable: %w", p.dir, err)
	}
	return f, nil
}

// exitMessage is the sentence polderd ended with, from what it logged since offset.
func (p *Plane) exitMessage(offset int64) string {
	const prefix = "polderd: "
	words := "polderd ended without a word; see " + p.LogFile()
	f, err := os.Open(p.LogFile())
	if err != nil {
		return words
	}
	defer f.Close() //nolint:errcheck // read only
	if _, err := f.Seek(offset, 0); err != nil {
		return words
	}
	for s := bufio.NewScanner(f); s.Scan(); {
		if w, ok := strings.CutPrefix(s.Text(), prefix); ok {
			words = w
		}
	}
	return words
}

// FindPolderd finds the polderd beside the running program.
func FindPolderd() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding polderd: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("finding polderd: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), "polderd")
	if _, err := os.Stat(path); err != nil {
		return "", exit.Errorf(exit.Failure, "there is no polderd beside %s; build both with: make build", self)
	}
	return path, nil
}
