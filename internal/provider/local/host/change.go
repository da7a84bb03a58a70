package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/polder-kaas/polder/internal/atomicfile"
)

// remove ends the machine and leaves nothing of it behind. The machine is forgotten first by its
// name on disk, so that a host that is ended meanwhile does not start it again.
func (h *Host) remove(ctx context.Context, name string) error {
	defer h.turn(name)()
	m := h.get(name)
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
	defer h.turn(name)()
	m := h.get(name)
	switch {
	case m == nil:
		return fmt.Errorf("there is no machine %s", name)
	case m.broken != nil:
		return m.broken
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
		m.kubelet.SwitchedOff(ctx)
		m.kill()
	}
	return h.add(m.spec)
}
