// Package measure starts planes for benchmarks and reads what they cost.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

const (
	startTimeout      = 90 * time.Second
	stopTimeout       = 30 * time.Second
	startPollInterval = 20 * time.Millisecond
)

// Plane is a polderd with its directory.
type Plane struct {
	*process.Process
	variant Variant
	dir     string // short, since sockets will be in it
	listen  string
	Config  *rest.Config // of the administrator
	Client  client.WithWatch
}

// Variant is a way to run polderd.
type Variant struct {
	Program string   // empty: bin/polderd
	Env     []string // further variables
	Flags   []string // further flags
}

// WithPlane runs bin/polderd as Variant.WithPlane does.
func WithPlane(ctx context.Context, do func(*Plane) error, flags ...string) error {
	return Variant{Flags: flags}.WithPlane(ctx, do)
}

// WithPlane starts a polderd on an empty directory and calls do. Then it ends polderd and all clusters and removes
// everything, also after an interrupt.
func (v Variant) WithPlane(ctx context.Context, do func(*Plane) error) (err error) {
	log.SetLogger(logr.Discard()) // of clients; errors come back anyway
	if v.Program == "" {
		v.Program = "bin/polderd"
	}
	p := &Plane{variant: v, listen: "127.0.0.1:0"}
	if p.dir, err = os.MkdirTemp("", "polder-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(p.close(err), err) }()
	scenario.Logf("starting polderd on an empty directory")
	if err := p.Start(ctx); err != nil {
		return err
	}
	return do(p)
}

// Data is its data directory.
func (p *Plane) Data() string { return filepath.Join(p.dir, "data") }

// Kubeconfig is the administrator's.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.Data(), "admin.kubeconfig") }

// Start runs polderd until it is ready, on the address it had before.
func (p *Plane) Start(ctx context.Context) (err error) {
	args := append([]string{"serve", "--data-dir", p.Data(), "--listen", p.listen}, p.variant.Flags...)
	p.Process, err = process.StartWithEnv(p.variant.Env, p.dir, p.variant.Program, args...)
	if err != nil {
		return err
	}
	until := Poll{Every: startPollInterval, Timeout: startTimeout, Stop: p.EndedError}
	if err := until.Do(ctx, "polderd", p.checkReady); err != nil {
		return err
	}
	p.Config, p.Client, err = connect(p.Kubeconfig())
	return err
}

func (p *Plane) checkReady(context.Context) error {
	s, _, err := status.Read(p.Data())
	if err != nil {
		return err
	}
	if s.PID != p.PID() || s.Phase != status.Ready {
		return fmt.Errorf("process %d is %q", s.PID, s.Phase)
	}
	p.listen = strings.TrimPrefix(s.Address, "https://")
	return nil
}

// close ends everything and removes it. If something went wrong, it prints the last lines of polderd's log.
func (p *Plane) close(cause error) error {
	var errs []error
	if p.Process != nil { // else it could not be started
		errs = append(errs, p.Stop())
		if tail, err := p.LogTail(20); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
			scenario.Logf("the last lines of polderd:\n%s", tail)
		}
	}
	return errors.Join(append(errs, p.stopHosts(), os.RemoveAll(p.dir))...)
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
