package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// failMachine makes a machine fail, for those who want to see what becomes of its cluster.
func (h *Host) failMachine(ctx context.Context, name string, how hostapi.Failure) error {
	defer h.lockMachine(name)()
	m := h.getMachine(name)
	switch {
	case m == nil:
		return fmt.Errorf("there is no machine %s", name)
	case m.off:
		return fmt.Errorf("machine %s is off", name)
	}
	switch how {
	case hostapi.FailKill:
		return m.signalProcesses(syscall.SIGKILL)
	case hostapi.FailStop:
		return m.signalProcesses(syscall.SIGSTOP)
	case hostapi.FailPartition:
		return m.setPartitioned(true)
	case hostapi.FailContinue:
		return m.continueRunning()
	case hostapi.FailDisk:
		return h.loseMachine(ctx, m)
	}
	return fmt.Errorf("machines cannot fail by %q", how)
}

// continueRunning ends what stop and partition have begun.
func (m *machine) continueRunning() error {
	if !m.kubelet.IsPartitioned() {
		return m.signalProcesses(syscall.SIGCONT)
	}
	_ = m.signalProcesses(syscall.SIGCONT) // on many nothing runs
	return m.setPartitioned(false)
}

// signalProcesses sends a signal to all processes that run on the machine.
func (m *machine) signalProcesses(s syscall.Signal) error {
	processes, _, _ := m.kubelet.Status()
	var sent int
	for _, p := range processes {
		if p.PID == 0 {
			continue // it does not run at the moment
		}
		if err := syscall.Kill(p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signalling %s: %w", p.Name, err)
		}
		sent++
	}
	if sent == 0 {
		return fmt.Errorf("nothing runs on machine %s: it is simulated, or does not run; use partition or disk, or switch it off", m.spec.Name)
	}
	return nil
}

// setPartitioned cuts the machine off from the network, or connects it again. A machine that is cut off stays so when
// the host restarts.
func (m *machine) setPartitioned(on bool) error {
	if !on {
		if err := os.Remove(m.dir.PartitionFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return m.kubelet.SetPartitioned(false) // which registers the node again, and so starts its heartbeats
	}
	// First, since it fails on a machine whose files are not what they should be; nothing is to remain of that.
	if err := m.kubelet.SetPartitioned(true); err != nil {
		return err
	}
	return atomicfile.Write(m.dir.PartitionFile(), nil, 0o600)
}

// loseMachine removes all files of a machine, as if its disk were gone, and forgets it.
func (h *Host) loseMachine(ctx context.Context, m *machine) error {
	// First, as in removeMachine: a host that is ended meanwhile does not start the machine again.
	if err := os.Remove(m.dir.SpecFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.kubelet.RemoveRunningLabel(ctx) // before the kill: the API server that is told may be the machine's own
	m.kill()
	return h.forgetMachine(m)
}
