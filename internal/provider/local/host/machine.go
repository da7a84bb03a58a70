package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/polder-kaas/polder/internal/atomicfile"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/provider/local/kubelet"
)

// machine is one machine that is switched on, or off.
type machine struct {
	host    *Host
	spec    hostapi.Machine
	dir     hostapi.MachineDir
	address netip.Addr
	kubelet *kubelet.Kubelet
	ctx     context.Context // of everything that runs on the machine
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	off     bool
}

// put makes a machine, or leaves the one that is there. What it is made from does not change:
// Cluster API replaces machines.
func (h *Host) put(spec hostapi.Machine) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	emulate, err := h.cfg.Versions.Emulate(spec.Version)
	if err != nil {
		return err
	}
	if have := h.get(spec.Name); have != nil {
		if have.spec.UID == spec.UID {
			return nil
		}
		return fmt.Errorf("there is another machine of the name %s", spec.Name)
	}
	dir := h.cfg.Dir.Machine(spec.Name)
	address, err := h.prepare(dir, spec)
	if err != nil {
		return err
	}
	m := &machine{host: h, spec: spec, dir: dir, address: address}
	m.kubelet = kubelet.New(kubelet.Config{
		Machine: spec, Dir: dir, Address: address, Emulate: emulate, Binary: h.cfg.Binary, Forker: h.forker,
		Serving: h.servingCertificate, Changed: h.changed, Log: h.cfg.Log,
	})
	m.ctx, m.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with the machine, not with a request
	_, err = os.Stat(dir.OffFile())
	m.off = err == nil
	h.mu.Lock()
	if h.ended || h.machines[spec.Name] != nil {
		h.mu.Unlock()
		m.cancel()
		return errors.New("the host is ending, or the machine was just made")
	}
	h.machines[spec.Name] = m
	h.mu.Unlock()
	if !m.off {
		m.start()
	}
	h.changed()
	return nil
}

// prepare writes what a later host must know; the file that names the machine comes last.
func (h *Host) prepare(dir hostapi.MachineDir, spec hostapi.Machine) (netip.Addr, error) {
	for _, d := range []string{string(dir), dir.Files(), dir.Log("..")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return netip.Addr{}, err
		}
	}
	address, err := h.address(dir)
	if err != nil {
		return address, err
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return address, err
	}
	return address, atomicfile.Write(dir.SpecFile(), b, 0o600)
}

func (m *machine) start() {
	m.wg.Go(func() { m.kubelet.Run(m.ctx) })
	m.wg.Go(func() { m.boot(m.ctx) })
}

// stop ends what runs in order and waits.
func (m *machine) stop() {
	m.cancel()
	m.wg.Wait()
}

// kill ends what runs at once.
func (m *machine) kill() {
	m.kubelet.Kill()
	m.stop()
}

// remove ends the machine and leaves nothing of it behind. The machine is forgotten first by its
// name on disk, so that a host that is ended meanwhile does not start it again.
func (h *Host) remove(ctx context.Context, name string) error {
	m := h.get(name)
	if m == nil {
		return nil
	}
	if err := os.Remove(m.dir.SpecFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.kill()
	if m.spec.ControlPlane {
		h.removeMirrorPods(ctx, m.spec.Node)
	}
	if err := os.RemoveAll(string(m.dir)); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.machines, name)
	h.mu.Unlock()
	h.changed()
	return nil
}

// drain takes the machine's API server out of service if another one serves.
func (h *Host) drain(name string) {
	m := h.get(name)
	if m == nil || !m.spec.ControlPlane {
		return
	}
	for _, other := range h.list() {
		if other != m && other.kubelet.Serving() {
			m.kubelet.Drain()
			return
		}
	}
}

// power switches a machine off or on. A machine that is off stays off when the host restarts.
func (h *Host) power(ctx context.Context, name string, on bool) error {
	m := h.get(name)
	if m == nil {
		return fmt.Errorf("there is no machine %s", name)
	}
	switch {
	case m.off == !on:
		return nil
	case !on:
		if err := os.WriteFile(m.dir.OffFile(), nil, 0o600); err != nil {
			return err
		}
		m.kubelet.SwitchedOff(ctx)
		m.kill()
	default:
		if err := os.Remove(m.dir.OffFile()); err != nil {
			return err
		}
	}
	h.mu.Lock()
	delete(h.machines, name)
	h.mu.Unlock()
	return h.put(m.spec)
}

func (m *machine) status() hostapi.MachineStatus {
	s := hostapi.MachineStatus{
		Name: m.spec.Name, Node: m.spec.Node, UID: m.spec.UID, ControlPlane: m.spec.ControlPlane, Version: m.spec.Version,
		Address: m.address.String(), Dir: string(m.dir), Off: m.off,
	}
	if err := readJSON(m.dir.BootFile(), &s.Boot); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Boot.Problem = err.Error()
	}
	s.Boot.NotHonored = append(s.Boot.NotHonored, m.kubelet.NotHonored()...)
	s.Processes, s.Registered, s.Problem = m.kubelet.Status()
	for i, p := range s.Processes {
		s.Processes[i].Memory = anonymous(p.PID)
	}
	return s
}
