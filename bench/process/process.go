// Package process starts programs for benchmarks, and reads what they use.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end after SIGTERM.
const stopTimeout = 30 * time.Second

// Process is a program that runs, or has ended.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closes when the process has ended
}

// Start runs a program in a directory, with an environment that says nothing about memory or processors, and a log
// beside what it writes. If the benchmark is killed, the kernel ends the process too.
func Start(dir, program string, args ...string) (*Process, error) {
	return StartWithEnv(nil, dir, program, args...)
}

// StartWithEnv runs a program as Start does, with further variables in its environment.
func StartWithEnv(env []string, dir, program string, args ...string) (*Process, error) {
	abs, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: filepath.Base(program), done: make(chan struct{})}
	p.log = filepath.Join(dir, p.Name+".log")
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the process has a copy of its own
	p.cmd = exec.Command(abs, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append([]string{"HOME=" + dir, "PATH=/usr/bin:/bin"}, env...)
	// A group of its own keeps ^C on the terminal away from it: we end it ourselves.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// EndedError is nil while the process runs. Afterwards it says how it ended, with the last lines of its log.
func (p *Process) EndedError() error {
	select {
	case <-p.done:
		tail, err := p.LogTail(15)
		return errors.Join(fmt.Errorf("%s ended by itself (%s):\n%s", p.Name, p.cmd.ProcessState, tail), err)
	default:
		return nil
	}
}

// LogTail returns the last lines of the log.
func (p *Process) LogTail(lines int) (string, error) {
	b, err := os.ReadFile(p.log)
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), err
}

// Stop ends the process gracefully, or kills it if that takes too long.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s has not stopped within %s and was killed", p.Name, stopTimeout)
	}
}
