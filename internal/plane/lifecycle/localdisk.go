package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// machinesOnDisk reads what a host's files say about its machines. What cannot be read is a problem of that
// machine alone.
func machinesOnDisk(dir hostapi.Dir) []hostapi.MachineStatus {
	entries, err := os.ReadDir(dir.MachinesDir())
	if err != nil {
		return nil // the cluster is just being created or removed
	}
	var all []hostapi.MachineStatus
	for _, e := range entries {
		m, err := machineOnDisk(dir.MachineDir(e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // as the host does: it was being created or removed
		}
		if err != nil {
			m.Name, m.Problem = e.Name(), err.Error()
		}
		all = append(all, m)
	}
	return all
}

func machineOnDisk(dir hostapi.MachineDir) (hostapi.MachineStatus, error) {
	s := hostapi.MachineStatus{Dir: string(dir)}
	var spec hostapi.MachineSpec
	if err := readJSON(dir.SpecFile(), &spec); err != nil {
		return s, err
	}
	s.Name, s.Node, s.UID, s.ControlPlane, s.Version = spec.Name, spec.Node, spec.UID, spec.ControlPlane, spec.Version
	if b, err := os.ReadFile(dir.AddressFile()); err == nil {
		s.Address = strings.TrimSpace(string(b))
	}
	_, err := os.Stat(dir.OffFile())
	s.Off = err == nil
	_, err = os.Stat(dir.PartitionFile())
	s.Partitioned = err == nil
	if err := readJSON(dir.BootFile(), &s.Boot); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Boot.Problem = err.Error()
	}
	return s, nil
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
