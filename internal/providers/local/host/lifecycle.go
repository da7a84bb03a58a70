package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
)

// removeMachine ends the machine and leaves nothing of it behind. The spec file goes first, so that a host that is
// ended meanwhile does not start the machine again.
func (h *Host) removeMachine(ctx context.Context, name string) error {
	defer h.lockMachine(name)()
	m := h.getMachine(name)
	if m == nil {
		return nil
	}
	if err := os.Remove(m.dir.SpecFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.kill()
	if m.spec.ControlPlane && m.spec.Node != "" {
		h.removeMirrorPods(context.WithoutCancel(ctx), m.spec.Node) // nobody would do it later
	}
	return h.forgetMachine(m)
}

// forgetMachine removes the files of a machine on which nothing runs any more.
func (h *Host) forgetMachine(m *machine) error {
	if err := os.RemoveAll(string(m.dir)); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.machines, m.spec.Name)
	h.mu.Unlock()
	h.notifyChange()
	return nil
}

// drainMachine takes the machine's API server out of service if another one serves.
func (h *Host) drainMachine(name string) {
	m := h.getMachine(name)
	if m == nil || !m.spec.ControlPlane {
		return
	}
	for _, other := range h.listMachines() {
		if other != m && other.kubelet.IsServing() {
			m.kubelet.Drain()
			return
		}
	}
}

// setPower switches a machine off or on. A machine that is off stays off when the host restarts.
func (h *Host) setPower(ctx context.Context, name string, on bool) error {
	defer h.lockMachine(name)()
	m := h.getMachine(name)
	switch {
	case m == nil:
		return fmt.Errorf("there is no machine %s", name)
	case m.startError != nil:
		return m.startError
	case m.off == !on:
		return nil
	case on:
		if err := os.Remove(m.dir.OffFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	default:
		if err := atomicfile.Write(m.dir.OffFile(), nil, 0o600); err != nil {
			return err
		}
		// Before the kill: the API server that is told may be the machine's own.
		m.kubelet.RemoveRunningLabel(ctx)
		m.kill()
	}
	// A machine that was killed cannot be started again: another takes its place, on or off.
	return h.createMachine(m.spec)
}
