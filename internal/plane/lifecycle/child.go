package lifecycle

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// ChildOptions say how to start a polderd as a child of this process.
type ChildOptions struct {
	Binary     string
	Name       string // what it is called in lists of processes; empty: Binary
	Args       []string
	Dir        string   // working directory; empty: that of this process
	Env        []string // nil: that of this process
	Stdin      *os.File // nil: none
	Attributes *syscall.SysProcAttr
}

// Child is a polderd that this process started. Its output goes to the log file of the plane.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done closes
}

// StartChild starts one. The data directory must be there.
func (p *Plane) StartChild(o ChildOptions) (*Child, error) {
	log, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	offset, err := log.Seek(0, 2)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.Binary, o.Args...) //nolint:gosec // polderd beside us, or the running one
	if o.Name != "" {
		cmd.Args[0] = o.Name
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir, cmd.Env, cmd.SysProcAttr = o.Dir, o.Env, o.Attributes
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if err := cmd.Start(); err != nil {
		return nil, exit.Errorf(exit.Failure, "starting %s: %w; polder and polderd belong into one directory", o.Binary, err)
	}
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = cmd.Wait() // the exit code says it all
		c.err = exit.Errorf(exitCodeOf(cmd.ProcessState.ExitCode()), "%s", p.exitMessage(offset))
	}()
	return c, nil
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done closes when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is what the process ended with, once Done is closed: the code of polder for it, and its last sentence.
func (c *Child) Err() error { return c.err }

// Stop asks the process to stop.
func (c *Child) Stop() error { return c.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends a process that does nothing by itself any more. Until then it may write into its log what it hangs in.
func (c *Child) Kill(patience <-chan time.Time) {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended by itself
	select {
	case <-patience:
		_ = c.cmd.Process.Kill() // as above
		<-c.done
	case <-c.done:
	}
}

// exitResult says whether the child has ended, and why.
func (c *Child) exitResult() (bool, error) {
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
