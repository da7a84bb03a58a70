// Package plane is the whole management plane in one process: store, API server, Kubernetes' own controllers and
// Cluster API, put together and run under one supervisor. It is also the only owner of what a process has just
// one of: loggers, feature gates, memory limits.
package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/polder-kaas/polder/internal/front/rest"
	"github.com/polder-kaas/polder/internal/plane/capi"
	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/plane/quotaevaluator"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/plane/tenantplanes"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/program/logging"
	"github.com/polder-kaas/polder/internal/program/memory"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// memoryBurst is how much garbage may gather: making a cluster takes less time with Later than with Start.
var memoryBurst = memory.Burst{Start: 32 << 20, Later: 160 << 20}

// Plane is one run of the management plane.
type Plane struct {
	cfg       Config
	dir       *datadir.Dir
	listener  net.Listener
	rest      net.Listener // of the API for customers; nil if it is not served
	manifests manifests.Index
	reporter  *statusReporter
	metrics   *prometheus.Registry // our own metrics
	exitOnce  sync.Once
	quota     quotaevaluator.Source // filled by the operator, read by whoever counts
	capi      *capi.ClusterAPI
	tenants   *tenantplanes.Planes

	// confinement is what the kernel offers to confine local clusters; the first call takes a moment.
	confinement func() hostapi.Confinement
}

// Run opens the data directory and serves until ctx ends or a component fails. What cannot be
// used (directory, address, binary) is refused within moments and with nothing changed. The
// error carries its exit code.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg, err = cfg.Complete()
	if err != nil {
		return err
	}
	p := &Plane{cfg: cfg, metrics: prometheus.NewRegistry()}
	if p.manifests, err = manifests.Load(); err != nil {
		return err
	}
	v := buildinfo.Get()
	if p.dir, err = datadir.Open(cfg.DataDir,
		datadir.Marker{Format: datadir.Format, Polder: v.Version, Kubernetes: v.Kubernetes, Etcd: v.Etcd}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.dir.Close()) }()
	if p.listener, err = listen(ctx, "--listen", cfg.Listen); err != nil {
		return err
	}
	if cfg.REST.Listen != "" {
		if p.rest, err = listen(ctx, "--rest-listen", cfg.REST.Listen); err != nil {
			return err
		}
		defer p.rest.Close() //nolint:errcheck // who serves it has closed it
	}
	// Only the API server may close the listener: Kubernetes panics if it is closed under it.
	return p.run(ctx, v)
}

func (p *Plane) run(ctx context.Context, v buildinfo.Info) error {
	p.reporter = newStatusReporter(p.dir.Path(), p.cfg.Clock, p.cfg.Log, status.Status{
		PID: os.Getpid(), Phase: status.Starting, StartedAt: p.cfg.Clock.Now(), Address: p.serverURL(), REST: p.restURL(),
		Kubeconfig: p.kubeconfigPath(), Stacks: p.cfg.Stacks.Source, Versions: v,
	})
	var keeper sync.WaitGroup
	mctx, stopMemory := context.WithCancel(ctx)
	defer keeper.Wait()
	defer stopMemory()
	keeper.Go(func() { memory.TuneGC(mctx, memoryBurst) })
	p.confinement = sync.OnceValue(func() hostapi.Confinement { return p.detectConfinement(mctx) })
	keeper.Go(func() { p.confinement() })
	logging.Install(p.cfg.Log, func(message string) { p.handleFatal(ctx, message) })
	if err := capi.SetFeatureGates(); err != nil {
		return p.reporter.recordExit(fmt.Errorf("setting feature gates: %w", err))
	}
	if err := etcd.Verify(ctx, p.storeDir(), p.etcdLogger()); err != nil {
		return p.reporter.recordExit(ignoreStop(ctx, err))
	}
	stages, checks, api, err := p.buildStages(ctx)
	if err != nil {
		return p.reporter.recordExit(err)
	}
	p.cfg.Log.Info("starting", "version", v.Version, "kubernetes", v.Kubernetes, "clusterAPI", v.ClusterAPI, "dataDir",
		p.dir.Path(), "address", p.serverURL())
	s := supervisor.New(supervisor.Config{Clock: p.cfg.Clock, Log: p.cfg.Log, OnChange: p.onStatusChange},
		injectFaults(p.dir.Path(), stages)...)
	checks.set(s.Check)
	p.metrics.MustRegister(componentMetrics{s.Status})
	// At the signal, not after the stop: the status file and systemd must say that it stops while it does.
	stopWatching := context.AfterFunc(ctx, p.reportStopping)
	defer stopWatching()
	err = s.Run(ctx, func() {
		p.reportReady()
		api.PublishOpenAPI()
	})
	return p.reporter.recordExit(withExitCode(err))
}

// ignoreStop makes nothing of an error that is there because the plane was asked to stop.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// withExitCode gives a failed component and a stop that took too long their exit codes.
func withExitCode(err error) error {
	var ce *supervisor.ComponentError
	switch {
	case errors.As(err, &ce):
		return exit.With(exit.ComponentFailed, err)
	case errors.Is(err, supervisor.ErrStopTimeout):
		return exit.With(exit.StopTimeout, err)
	}
	return err
}

// onStatusChange keeps the status file up to date, and silences libraries once a component has failed: what the
// others log then are consequences.
func (p *Plane) onStatusChange(cs []supervisor.Status) {
	p.reporter.setComponents(cs)
	if slices.ContainsFunc(cs, func(c supervisor.Status) bool { return c.State == supervisor.Failed }) {
		logging.SilenceLibraries(p.cfg.Log)
	}
}

func (p *Plane) reportReady() {
	p.reporter.setPhase(status.Ready)
	p.cfg.Log.Info("ready", "address", p.serverURL(), "kubeconfig", p.kubeconfigPath())
	p.cfg.Notify("READY=1")
}

func (p *Plane) reportStopping() {
	p.reporter.setPhase(status.Stopping)
	p.cfg.Log.Info("stopping")
	logging.SilenceLibraries(p.cfg.Log)
	p.cfg.Notify("STOPPING=1")
}

// handleFatal is called instead of klog's os.Exit, and must not return. A post-start hook of the API server that is
// asked to stop while it starts takes that for a failure. Nobody waits for it, so it waits for the end of the process.
func (p *Plane) handleFatal(ctx context.Context, message string) {
	if ctx.Err() != nil && strings.HasPrefix(message, "PostStartHook") {
		p.cfg.Log.Info("stopping while starting", "reason", message)
		select {}
	}
	p.exitWithReason(message)
}

// exitWithReason replaces the os.Exit calls hidden in libraries: the reason is kept where people look for it, and
// the process ends with the code of a failed component. The store need not be closed: what it acknowledged is on
// disk.
func (p *Plane) exitWithReason(message string) {
	p.exitOnce.Do(func() {
		err := exit.With(exit.ComponentFailed, errors.New(message))
		p.cfg.Log.Error("a library ended the process", "error", err)
		_ = p.reporter.recordExit(err)
		os.Exit(exit.ComponentFailed) //nolint:forbidigo // the caller would do the same, without the reason
	})
}

func (p *Plane) kubeconfigPath() string { return p.dir.Path("admin.kubeconfig") }

// serverURL is the URL of the API as seen from this machine.
func (p *Plane) serverURL() string { return "https://" + reachableAddress(p.listener) }

// restURL is that of the API for customers, or nothing if it is not served.
func (p *Plane) restURL() string {
	if p.rest == nil {
		return ""
	}
	return "https://" + reachableAddress(p.rest) + rest.Prefix
}

// reachableAddress is where a listener can be reached from this machine.
func reachableAddress(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || a.IP.IsUnspecified() {
		_, port, _ := net.SplitHostPort(l.Addr().String()) // a listener's address is well-formed
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}

// listen opens the port before anything is started, so that a taken one is reported at once.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, exit.Errorf(exit.AddressTaken, "address %s is taken by another program; choose another with %s",
			address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, exit.Errorf(exit.AddressTaken, "address %s does not belong to this machine; choose another with %s",
			address, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, exit.Errorf(exit.AddressTaken,
			"address %s may not be opened by this user; choose a port above 1023 with %s", address, flag)
	}
	return nil, exit.Errorf(exit.AddressTaken, "address %s cannot be opened: %w; choose another with %s", address,
		err, flag)
}
