package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
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
	var child *Child
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
func (p *Plane) awaitReady(ctx context.Context, child *Child, progress func(Report)) (Report, error) {
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

// hostOf is ADDRESS:PORT of a URL, or nothing.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func (p *Plane) startProcess(o UpOptions, last Report) (*Child, error) {
	if err := datadir.Prepare(p.dir); err != nil {
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
	return p.StartChild(ChildOptions{
		Binary: o.Binary, Args: args, Dir: p.dir,
		Attributes: &syscall.SysProcAttr{Setsid: true}, // it outlives the terminal
	})
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
