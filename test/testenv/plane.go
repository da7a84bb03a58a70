package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/plane/status"
)

// startTimeout is generous: test machines are shared and slow at times.
const startTimeout = 5 * time.Minute

// Plane is a polderd in the foreground, as systemd would run it.
type Plane struct {
	Tree         Tree
	Data         string
	OfferShipped bool     // the plane offers the stacks in the binary; most tests bring their own
	Env          []string // further variables of polderd's environment
	MaxFiles     int      // that polderd may have open; 0: as many as the test may

	cmd    *exec.Cmd
	log    *Buffer
	done   chan struct{} // closes when the process has ended
	listen string
}

func newPlane(tree Tree) *Plane {
	return &Plane{Tree: tree, Data: filepath.Join(tree.Root, "data"), listen: "127.0.0.1:0", log: &Buffer{}}
}

// NewPlane prepares a plane in the tree; Start starts it. It ends with the test t.
func NewPlane(t testing.TB, tree Tree) *Plane {
	t.Helper()
	p := newPlane(tree)
	t.Cleanup(func() {
		p.Kill()
		if err := p.stopHosts(); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		if t.Failed() {
			t.Logf("log of polderd:\n%s", tail(p.Log(), 60))
		}
	})
	return p
}

// StartPlane starts a fresh plane, waits until it is ready, and ends it with the test t.
func StartPlane(t testing.TB) *Plane {
	t.Helper()
	p := NewPlane(t, NewTree(t, false))
	p.Start(t)
	p.AwaitReady(t)
	return p
}

// Start starts polderd. A plane that was stopped or killed starts again on its data and address.
func (p *Plane) Start(t testing.TB, flags ...string) {
	t.Helper()
	if err := p.start(flags...); err != nil {
		t.Fatal(err)
	}
}

func (p *Plane) start(flags ...string) error {
	all := append([]string{"serve", "--data-dir", p.Data, "--listen", p.listen}, flags...)
	if !p.OfferShipped {
		all = append(all, "--no-shipped-stacks")
	}
	p.cmd = p.Tree.Command("polderd", all...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(p.cmd.Env, p.Env...)
	if p.MaxFiles > 0 {
		limited := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, p.MaxFiles)
		p.cmd.Args = append([]string{"sh", "-c", limited, p.cmd.Path}, p.cmd.Args[1:]...)
		p.cmd.Path = "/bin/sh"
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	// Both are passed on, since a later start replaces them in p.
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		_ = cmd.Wait() // the exit code is in ProcessState
	}(p.cmd, p.done)
	return nil
}

// AwaitReady waits until polderd says that it is ready.
func (p *Plane) AwaitReady(t testing.TB) {
	t.Helper()
	if err := p.awaitReady(); err != nil {
		t.Fatal(err)
	}
}

func (p *Plane) awaitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		if p.IsReady() {
			s, _, err := status.Read(p.Data)
			p.listen = strings.TrimPrefix(s.Address, "https://")
			return err
		}
		select {
		case <-p.done:
			return fmt.Errorf("polderd ended with code %d:\n%s", p.cmd.ProcessState.ExitCode(), tail(p.Log(), 20))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("polderd is not ready after %s:\n%s", startTimeout, tail(p.Log(), 20))
		}
	}
}

// IsReady says whether polderd says that it is ready.
func (p *Plane) IsReady() bool {
	s, ok, err := status.Read(p.Data)
	return err == nil && ok && s.PID == p.PID() && s.Phase == status.Ready
}

// HasEnded says whether the process has ended, and with which code.
func (p *Plane) HasEnded() (code int, ended bool) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), true
	default:
		return 0, false
	}
}

// PID of the running process.
func (p *Plane) PID() int { return p.cmd.Process.Pid }

// Status is what polderd says about itself.
func (p *Plane) Status(t testing.TB) status.Status {
	t.Helper()
	s, ok, err := status.Read(p.Data)
	if err != nil || !ok {
		t.Fatalf("reading the status: %v, %v", ok, err)
	}
	return s
}

// Signal sends a signal and waits for the end of the process; it returns its exit code.
func (p *Plane) Signal(t testing.TB, sig syscall.Signal, timeout time.Duration) int {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return p.AwaitExit(t, timeout)
}

// AwaitExit waits for the process to end and returns its exit code.
func (p *Plane) AwaitExit(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("polderd still runs after %s", timeout)
		return -1
	}
}

// Kill ends the process as a power failure would, if it still runs.
func (p *Plane) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// Log is everything polderd has written so far, over all starts.
func (p *Plane) Log() string { return p.log.String() }

// Buffer gathers what a process writes, and can be read meanwhile.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the buffer.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is everything written so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ExcludeComponents chooses, before the start, components that are not to run; the tree's polderd must be the one with
// faults.
func (p *Plane) ExcludeComponents(t testing.TB, components ...string) {
	t.Helper()
	if err := p.writeExcluded(components); err != nil {
		t.Fatal(err)
	}
}

// writeExcluded writes the file in which only polderd-fault looks up which components are not to run.
func (p *Plane) writeExcluded(components []string) error {
	if len(components) == 0 {
		return nil
	}
	file := filepath.Join(p.Data, "without")
	return errors.Join(os.Mkdir(p.Data, 0o700), chown(p.Data), os.WriteFile(file, []byte(strings.Join(components, "\n")), 0o600), chown(file))
}

// SetListen sets the address to serve at; the default is any free port.
func (p *Plane) SetListen(address string) { p.listen = address }

// Address is the host and port the plane serves at.
func (p *Plane) Address(t testing.TB) string {
	t.Helper()
	return strings.TrimPrefix(p.Status(t).Address, "https://")
}
