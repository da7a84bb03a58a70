// Package host is the process that keeps one local cluster: the endpoint of its API, and its
// machines with their processes. It is a process of its own so that polderd can end, and be
// ended, without disturbing a running cluster, and so that what one cluster leaks or breaks is
// that cluster's alone.
//
// Everything it must know is in its directory; started on that directory again, it goes on where
// it was. Its processes end with it, however it ends.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/balancer"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubelet"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/process"
)

// parallelBoots is how many workers boot at the same time.
const parallelBoots = 4

// Config says what a host works with. All fields but Endpoint and Output are needed.
type Config struct {
	Dir      hostapi.Dir
	Binary   string // of polderd
	Versions kubeversion.Range
	Clock    clock.WithTicker
	Log      *slog.Logger
	// Endpoint is where people reach the cluster, if the host is in a network where they cannot.
	Endpoint    net.Listener
	Confinement hostapi.Confinement
	Output      []*os.File // stdout and stderr; those that are the host's log file are rotated
	// AllowEverything is for tests, whose machines run programs that stand for the real ones.
	AllowEverything bool
}

// Host keeps one cluster.
type Host struct {
	cfg          Config
	cluster      hostapi.Cluster
	started      time.Time
	forker       *process.Forker
	watcher      *kubelet.ManifestWatcher
	balancer     *balancer.Balancer
	bootSlots    chan struct{}   // one for each worker that is booting
	changeSignal chan struct{}   // wakes publishChanges; one signal is enough for many changes
	ctx          context.Context // of all that runs in the host
	quit         context.CancelFunc
	outside      *outsideConnections
	addressLock  sync.Mutex // held while an address is chosen for a machine, until the machine is known

	mu              sync.Mutex
	machineUnlocked *sync.Cond      // signals that a machine has left lockedMachines
	lockedMachines  map[string]bool // machines that are being changed
	machines        map[string]*machine
	problem         string
	revision        int64
	revisionChanged chan struct{} // closed at the next change
	stopAtOnce      bool          // kill everything instead of stopping it gracefully
	stopping        bool          // no machine is started any more
}

// Run keeps the cluster of cfg.Dir until ctx ends or a request stops it.
func Run(ctx context.Context, cfg Config) error {
	// The lock comes before the cluster file is read: whoever removes that file first can be sure that this host ends.
	lock, err := filelock.Acquire(cfg.Dir.LockFile())
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the kernel does the same
	h := newHost(cfg)
	defer h.forker.Close()
	defer h.watcher.Close()
	if err := readJSON(cfg.Dir.ClusterFile(), &h.cluster); err != nil {
		return err
	}
	if err := h.cluster.Validate(); err != nil {
		return fmt.Errorf("reading %s: %w", cfg.Dir.ClusterFile(), err)
	}
	ctx, h.quit = context.WithCancel(ctx)
	h.ctx = ctx
	defer h.quit()
	l, err := listenUnix(ctx, cfg.Dir.Socket())
	if err != nil {
		return err
	}
	return h.run(ctx, l)
}

func newHost(cfg Config) *Host {
	h := &Host{
		cfg: cfg, started: cfg.Clock.Now(), forker: process.NewForker(), balancer: balancer.New(balancer.Config{
			Log: cfg.Log,
		}),
		bootSlots: make(chan struct{}, parallelBoots), changeSignal: make(chan struct{}, 1),
		machines: map[string]*machine{}, lockedMachines: map[string]bool{}, revisionChanged: make(chan struct{}),
		outside: newOutsideConnections(),
	}
	h.machineUnlocked = sync.NewCond(&h.mu)
	var err error
	if h.watcher, err = kubelet.NewManifestWatcher(); err != nil {
		cfg.Log.Warn("manifests are read at intervals; the limit fs.inotify.max_user_instances may be too low", "error", err)
	}
	h.revision = h.started.UnixMilli() // so that no revision is used twice, not even after a restart
	return h
}

// run answers on l, which it closes.
func (h *Host) run(ctx context.Context, l net.Listener) error {
	if err := h.loadMachines(); err != nil {
		h.stopMachines()
		return errors.Join(err, l.Close())
	}
	h.cfg.Log.Info("keeping a local cluster", "namespace", h.cluster.Namespace, "cluster", h.cluster.Name, "endpoint",
		h.cluster.Endpoint().String(), "machines", len(h.machines))
	var served error
	var wg sync.WaitGroup
	wg.Go(func() { h.publishChanges(ctx) })
	wg.Go(func() { h.serveEndpoint(ctx) })
	wg.Go(func() { h.serveHandedEndpoint(ctx) })
	wg.Go(func() { h.serveProxy(ctx) })
	wg.Go(func() { h.runSimulation(ctx) })
	wg.Go(func() { h.stopWhenDirectoryRemoved(ctx) })
	wg.Go(func() { h.rotateLog(ctx) })
	wg.Go(func() {
		defer h.quit() // a host that nobody can talk to is of no use
		served = serveHTTP(ctx, l, h.handler())
	})
	<-ctx.Done()
	h.stopMachines()
	wg.Wait()
	return served
}

func readJSON(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}
