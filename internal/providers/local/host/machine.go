package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/providers/local/allowance"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubelet"
	"github.com/polder-kaas/polder/internal/providers/local/process"
)

// machine is one machine of the host, switched on or off.
type machine struct {
	host             *Host
	spec             hostapi.MachineSpec
	dir              hostapi.MachineDir
	address          netip.Addr
	kubelet          *kubelet.Kubelet
	ctx              context.Context // of everything that runs on the machine
	cancel           context.CancelFunc
	wg               sync.WaitGroup
	off              bool
	configured       atomic.Bool                   // the spec on disk has the cluster's configuration
	startError       error                         // why it cannot be started at all
	bootProcessState atomic.Pointer[process.State] // of the boot process; nil before there is one
}

// ensureMachine makes a machine, or leaves the one that is there. What it is made from does not change:
// Cluster API replaces machines.
func (h *Host) ensureMachine(spec hostapi.MachineSpec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	defer h.lockMachine(spec.Name)()
	have := h.getMachine(spec.Name)
	switch {
	case have == nil:
		return h.createMachine(spec)
	case have.spec.UID == spec.UID:
		return have.addClusterConfiguration(spec.ClusterConfiguration)
	case have.startError != nil:
		return have.startError
	default:
		return fmt.Errorf("there is another machine of the name %s", spec.Name)
	}
}

// addClusterConfiguration gives a machine that still boots the configuration of its cluster, if it has none: it was
// made by an older polderd, which did not hand it over.
func (m *machine) addClusterConfiguration(b []byte) error {
	if len(b) == 0 || m.configured.Load() || m.isBooted() {
		return nil
	}
	spec := m.spec
	spec.ClusterConfiguration = b
	content, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(m.dir.SpecFile(), content, 0o600); err != nil {
		return err
	}
	m.configured.Store(true) // the boot reads the file anew at each attempt
	m.host.notifyChange()
	return nil
}

// createMachine makes the machine from what is on disk, which it writes first for a new one, and puts it in place of
// the one of that name.
func (h *Host) createMachine(spec hostapi.MachineSpec) error {
	emulate, err := h.cfg.Versions.EmulatedVersion(spec.Version)
	if err != nil {
		return err
	}
	h.addressLock.Lock()
	defer h.addressLock.Unlock()
	dir := h.cfg.Dir.MachineDir(spec.Name)
	address, err := h.prepareMachineDir(dir, spec)
	if err != nil {
		return err
	}
	return h.registerMachine(h.newMachine(spec, address, emulate))
}

// addFailedMachine adds a machine that is there but cannot be started, so that its status says why and it can be
// deleted.
func (h *Host) addFailedMachine(spec hostapi.MachineSpec, cause error) {
	h.cfg.Log.Warn("a machine cannot be started", "machine", spec.Name, "error", cause)
	address, _ := h.readAddress(h.cfg.Dir.MachineDir(spec.Name)) // it may be what is broken
	m := h.newMachine(spec, address, "")
	m.startError = fmt.Errorf("the machine cannot be started: %w; delete it, and it will be replaced", cause)
	_ = h.registerMachine(m) // only a host that is ending refuses
}

func (h *Host) newMachine(spec hostapi.MachineSpec, address netip.Addr, emulate string) *machine {
	m := &machine{host: h, spec: spec, dir: h.cfg.Dir.MachineDir(spec.Name), address: address}
	m.configured.Store(len(spec.ClusterConfiguration) > 0)
	m.kubelet = kubelet.New(kubelet.Config{
		Machine: spec, Dir: m.dir, Address: address, Cluster: h.cluster.Addresses, EmulatedVersion: emulate,
		Binary: h.cfg.Binary, Forker: h.forker, Watcher: h.watcher,
		AllowEverything:      h.cfg.AllowEverything || allowance.IsEverythingAllowed(m.dir),
		APIServerEnvironment: h.proxyEnvironment(),
		ServingCertificate:   h.servingCertificate, ClientCertificate: h.nodeCertificate,
		OnChange: h.notifyChange, Clock: h.cfg.Clock, Log: h.cfg.Log,
	})
	m.ctx, m.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with the machine, not with a request
	_, err := os.Stat(m.dir.OffFile())
	m.off = err == nil
	_, err = os.Stat(m.dir.PartitionFile())
	if err := m.kubelet.SetPartitioned(err == nil); err != nil && !errors.Is(err, os.ErrNotExist) {
		h.cfg.Log.Warn("a machine may be cut off from the network", "machine", spec.Name, "error", err)
	}
	return m
}

// registerMachine adds the machine and starts it under one lock: a host that is stopping stops all machines it has, and
// takes no more.
func (h *Host) registerMachine(m *machine) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		m.cancel()
		return errors.New("the cluster's host is ending")
	}
	h.machines[m.spec.Name] = m
	if !m.off && m.startError == nil {
		m.start()
	}
	h.notifyChange()
	return nil
}

// prepareMachineDir writes what a later host must know; the spec file comes last, because a directory without it counts
// as half made.
func (h *Host) prepareMachineDir(dir hostapi.MachineDir, spec hostapi.MachineSpec) (netip.Addr, error) {
	for _, d := range []string{string(dir), dir.RootFS(), dir.LogDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return netip.Addr{}, err
		}
	}
	address, err := h.assignAddress(dir)
	if err != nil {
		return address, err
	}
	if err := allowance.MarkMachine(h.cfg.Dir, dir); err != nil {
		return address, err
	}
	if _, err := os.Stat(dir.SpecFile()); err == nil {
		return address, nil // nothing is written for a machine that is known, so a full disk is no obstacle
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return address, err
	}
	return address, atomicfile.Write(dir.SpecFile(), b, 0o600)
}

func (m *machine) start() {
	m.wg.Go(func() { m.kubelet.Run(m.ctx) })
	m.wg.Go(func() { m.runBoot(m.ctx) })
}

// stop ends what runs on the machine gracefully and waits.
func (m *machine) stop() {
	m.cancel()
	m.wg.Wait()
}

// kill ends what runs on the machine at once and waits.
func (m *machine) kill() {
	m.kubelet.Kill()
	m.stop()
}
