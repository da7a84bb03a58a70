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
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/filelock"
	"github.com/polder-kaas/polder/internal/provider/local/balancer"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/provider/local/kubeversion"
	"github.com/polder-kaas/polder/internal/provider/local/process"
)

// parallelBoots is how many machines boot at the same time.
const parallelBoots = 4

// Config says what a host works with. All fields are needed.
type Config struct {
	Dir      hostapi.Dir
	Binary   string // of polderd
	Versions kubeversion.Range
	Log      *slog.Logger
}

// Host keeps one cluster.
type Host struct {
	cfg      Config
	cluster  hostapi.Cluster
	started  time.Time
	forker   *process.Forker
	balancer *balancer.Balancer
	boots    chan struct{} // slots
	poke     chan struct{} // something happened
	quit     context.CancelFunc
	wg       sync.WaitGroup // of machines

	mu       sync.Mutex
	machines map[string]*machine
	problem  string
	revision int64
	news     chan struct{} // closed at the next change
	now      bool          // end at once, not in order
	ended    bool          // no machine is started any more
}

// Run keeps the cluster of cfg.Dir until ctx ends or it is told to stop.
func Run(ctx context.Context, cfg Config) error {
	lock, err := filelock.Acquire(cfg.Dir.LockFile())
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the kernel does the same
	h := &Host{cfg: cfg, started: time.Now(), forker: process.NewForker(), balancer: balancer.New(balancer.Config{Log: cfg.Log}),
		boots: make(chan struct{}, parallelBoots), poke: make(chan struct{}, 1), machines: map[string]*machine{}, news: make(chan struct{})}
	defer h.forker.Close()
	if err := readJSON(cfg.Dir.ClusterFile(), &h.cluster); err != nil {
		return err
	}
	if err := h.cluster.Validate(); err != nil {
		return fmt.Errorf("reading %s: %w", cfg.Dir.ClusterFile(), err)
	}
	ctx, h.quit = context.WithCancel(ctx)
	defer h.quit()
	return h.run(ctx)
}

func (h *Host) run(ctx context.Context) error {
	l, err := listenUnix(ctx, h.cfg.Dir.Socket())
	if err != nil {
		return err
	}
	if err := h.load(); err != nil {
		return errors.Join(err, l.Close())
	}
	var wg sync.WaitGroup
	wg.Go(func() { h.follow(ctx) })
	wg.Go(func() { h.serveEndpoint(ctx) })
	wg.Go(func() { h.simulate(ctx) })
	served := make(chan error, 1)
	go func() { served <- h.serve(ctx, l) }()
	h.cfg.Log.Info("keeping a local cluster", "namespace", h.cluster.Namespace, "cluster", h.cluster.Name, "endpoint", h.cluster.Endpoint().String(), "machines", len(h.machines))
	<-ctx.Done()
	h.stopMachines()
	wg.Wait()
	return <-served
}

// load starts the machines that were there.
func (h *Host) load() error {
	dirs, err := filepath.Glob(filepath.Join(h.cfg.Dir.Machines(), "*"))
	if err != nil {
		return err
	}
	for _, d := range dirs {
		dir := hostapi.MachineDir(d)
		var spec hostapi.Machine
		err := readJSON(dir.SpecFile(), &spec)
		if errors.Is(err, os.ErrNotExist) {
			// It was being made, or removed, when the host ended; polderd will ask again.
			if err := os.RemoveAll(d); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := h.put(spec); err != nil {
			return err
		}
	}
	return nil
}

// serveEndpoint keeps the cluster's endpoint open; that the address is taken may pass.
func (h *Host) serveEndpoint(ctx context.Context) {
	for ctx.Err() == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", h.cluster.Endpoint().String())
		if err == nil {
			h.setProblem("")
			err = h.balancer.Serve(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			h.setProblem(fmt.Sprintf("the cluster's endpoint cannot be opened: %v", err))
			pause(ctx, time.Second)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (h *Host) setProblem(text string) {
	h.mu.Lock()
	h.problem = text
	h.mu.Unlock()
	if text != "" {
		h.cfg.Log.Warn(text)
	}
	h.changed()
}

// changed says that something happened. It only leaves a note, because whoever calls it may hold
// locks that are needed to look at what happened.
func (h *Host) changed() {
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

// follow wakes all who watch after each change, and tells the balancer who serves.
func (h *Host) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.poke:
		}
		var ready, draining []string
		for _, m := range h.list() {
			address := netip.AddrPortFrom(m.address, uint16(h.cluster.Port)).String() //nolint:gosec // validated
			switch {
			case m.kubelet.Serving():
				ready = append(ready, address)
			case m.kubelet.Draining():
				draining = append(draining, address)
			}
		}
		h.balancer.Set(ready, draining)
		h.mu.Lock()
		h.revision++
		close(h.news)
		h.news = make(chan struct{})
		h.mu.Unlock()
	}
}

// list is ordered by name.
func (h *Host) list() []*machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*machine
	for _, m := range h.machines {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *machine) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return all
}

func (h *Host) get(name string) *machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machines[name]
}

// stopMachines ends all machines: at once, or each in order.
func (h *Host) stopMachines() {
	h.mu.Lock()
	h.ended = true
	now := h.now
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range h.list() {
		wg.Go(func() {
			if now {
				m.kill()
			}
			m.stop()
		})
	}
	wg.Wait()
	h.wg.Wait()
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
