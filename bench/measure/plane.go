// Package measure starts planes for benchmarks and reads what they cost.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

const (
	program           = "bin/polderd"
	startTimeout      = 90 * time.Second
	stopTimeout       = 30 * time.Second
	startPollInterval = 20 * time.Millisecond
)

// Plane is a polderd with its directory. It and its clusters end with Close.
type Plane struct {
	dir    string // short, since sockets will be in it
	listen string
	flags  []string
	cmd    *exec.Cmd
	done   chan struct{} // closes when the process has ended
	Config *rest.Config  // of the administrator
	Client client.WithWatch
}

// NewPlane prepares a plane; Start starts it.
func NewPlane(flags ...string) (*Plane, error) {
	dir, err := os.MkdirTemp("", "polder-bench-")
	return &Plane{dir: dir, flags: flags, listen: "127.0.0.1:0"}, err
}

// Data is its data directory.
func (p *Plane) Data() string { return filepath.Join(p.dir, "data") }

func (p *Plane) logFile() string { return filepath.Join(p.dir, "log") }

// PID is that of the process.
func (p *Plane) PID() int { return p.cmd.Process.Pid }

// Start runs polderd until it is ready, on the address it had before.
func (p *Plane) Start(ctx context.Context) error {
	out, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the process has a copy of its own
	bin, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.Command(bin, append([]string{"serve", "--data-dir", p.Data(), "--listen", p.listen}, p.flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	cmd.Env = []string{"HOME=" + p.dir, "PATH=/usr/bin:/bin"}
	// A group of its own keeps ^C on the terminal away from it: we end it ourselves.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	if err := p.awaitReady(ctx); err != nil {
		return err
	}
	p.Config, p.Client, err = connect(filepath.Join(p.Data(), "admin.kubeconfig"))
	return err
}

func (p *Plane) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		s, ok, err := status.Read(p.Data())
		if err == nil && ok && s.PID == p.PID() && s.Phase == status.Ready {
			p.listen = strings.TrimPrefix(s.Address, "https://")
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("polderd has ended: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("waiting for polderd: %w", ctx.Err())
		case <-time.After(startPollInterval):
		}
	}
}

// Stop ends polderd gracefully, or kills it if that takes too long. Clusters keep running.
func (p *Plane) Stop() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("polderd has not stopped within %s and was killed", stopTimeout)
	}
}

// Close ends everything and removes it. If something went wrong, it prints the last lines of polderd's log.
func (p *Plane) Close(cause error) error {
	errs := []error{p.Stop(), p.stopHosts()}
	if log, err := os.ReadFile(p.logFile()); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		Logf("the last lines of polderd:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// stopHosts ends the hosts of local clusters, which outlive their plane. It does so after an interrupt, too.
func (p *Plane) stopHosts() error {
	l := launch.Launcher{HostsDir: hostapi.HostsDir(p.Data())}
	all, err := l.Clusters()
	errs := []error{err}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, c := range all {
		errs = append(errs, l.Stop(ctx, c.UID, true))
	}
	return errors.Join(errs...)
}
