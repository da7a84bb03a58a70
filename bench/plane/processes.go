package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end after SIGTERM.
const stopTimeout = 20 * time.Second

// Poll intervals are the error of the times in the table: short for one answer, longer
// where polling itself is work for the side that is polled.
const (
	soon   = 20 * time.Millisecond
	seldom = 250 * time.Millisecond
)

// processes are those of one side. They and their files live until close.
type processes struct {
	dir      string // for data, keys and logs; short, since sockets will be in it
	timeout  time.Duration
	progress *log.Logger
	all      []*process // in the order they were started
}

type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closes when the process has ended
}

func newProcesses(cfg config) (*processes, error) {
	dir, err := os.MkdirTemp("", "polder-bench-") // mode 0700
	if err != nil {
		return nil, err
	}
	return &processes{dir: dir, timeout: cfg.timeout, progress: cfg.progress}, nil
}

func (p *processes) path(elem ...string) string {
	return filepath.Join(append([]string{p.dir}, elem...)...)
}

// start runs a program with an environment that says nothing about memory or processors. If
// the benchmark is killed, the kernel ends its processes too.
func (p *processes) start(program string, args ...string) (*process, error) {
	abs, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	r := &process{name: filepath.Base(program), done: make(chan struct{})}
	r.log = p.path(r.name + ".log")
	out, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the process has a copy of its own
	r.cmd = exec.Command(abs, args...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = p.dir, out, out
	r.cmd.Env = []string{"HOME=" + p.dir, "PATH=/usr/bin:/bin"}
	// A group of its own keeps ^C on the terminal away from it: we end it ourselves.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", r.name, err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // how it ended is in ProcessState
	}()
	p.all = append(p.all, r)
	return r, nil
}

func (p *processes) pids() []int {
	var out []int
	for _, r := range p.all {
		out = append(out, r.cmd.Process.Pid)
	}
	return out
}

// await calls ask until it returns nil. It gives up when a process has ended or time is up, and then returns the last
// error too.
func (p *processes) await(ctx context.Context, what string, every time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ended := p.ended(); ended != nil {
			return fmt.Errorf("waiting for %s: %w", what, ended)
		}
		if sleep(ctx, every) != nil {
			return fmt.Errorf("waiting for %s: %w; the last answer was: %w", what, ctx.Err(), err)
		}
	}
}

// ended reports the first process that has ended by itself, with the last lines of its log.
func (p *processes) ended() error {
	for _, r := range p.all {
		select {
		case <-r.done:
			b, err := os.ReadFile(r.log)
			return errors.Join(fmt.Errorf("%s ended by itself (%s):\n%s", r.name, r.cmd.ProcessState, tail(b, 15)), err)
		default:
		}
	}
	return nil
}

func tail(b []byte, lines int) []byte {
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}

// stop ends all processes, the last started first, each by its own id.
func (p *processes) stop() {
	for i := len(p.all) - 1; i >= 0; i-- {
		r := p.all[i]
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		select {
		case <-r.done:
		case <-time.After(stopTimeout):
			p.progress.Printf("%s has not stopped after %s and is killed", r.name, stopTimeout)
			_ = r.cmd.Process.Kill()
			<-r.done
		}
	}
	p.all = nil
}

// close ends all processes and removes everything they wrote.
func (p *processes) close() error {
	p.stop()
	return os.RemoveAll(p.dir)
}
