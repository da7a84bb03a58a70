package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// loadMachines starts the machines that were there. One that cannot be started is in nobody's way: it is shown with the
// reason, and can be removed.
func (h *Host) loadMachines() error {
	entries, err := os.ReadDir(h.cfg.Dir.MachinesDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		dir := h.cfg.Dir.MachineDir(e.Name())
		var spec hostapi.MachineSpec
		err := readJSON(dir.SpecFile(), &spec)
		if errors.Is(err, os.ErrNotExist) {
			// It was being made, or removed, when the host ended; polderd will ask again.
			if err := os.RemoveAll(string(dir)); err != nil {
				return err
			}
			continue
		}
		if err == nil && spec.Name != e.Name() {
			err = fmt.Errorf("%s is of a machine of another name, %q", dir.SpecFile(), spec.Name)
		}
		if err == nil {
			err = h.ensureMachine(spec)
		}
		if err != nil {
			spec.Name = e.Name()
			h.addFailedMachine(spec, err)
		}
	}
	return nil
}

// lockMachine waits until nobody else changes the machine; the function it returns must be called.
func (h *Host) lockMachine(name string) (unlock func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.lockedMachines[name] {
		h.machineUnlocked.Wait()
	}
	h.lockedMachines[name] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.lockedMachines, name)
		h.machineUnlocked.Broadcast()
	}
}

// listMachines returns the machines, ordered by name.
func (h *Host) listMachines() []*machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*machine
	for _, m := range h.machines {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *machine) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return all
}

func (h *Host) getMachine(name string) *machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machines[name]
}

// stopMachines ends all machines: at once, or each gracefully.
func (h *Host) stopMachines() {
	h.mu.Lock()
	// From here on registerMachine refuses, so none is missing in the list below.
	h.stopping = true
	atOnce := h.stopAtOnce
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range h.listMachines() {
		wg.Go(func() {
			if atOnce {
				m.kill()
			}
			m.stop()
		})
	}
	wg.Wait()
}
