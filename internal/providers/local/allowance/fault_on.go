//go:build fault

package allowance

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// everything is the name of the file that allows everything.
const everything = "allow-everything"

// InterruptBoot is the name of the file that says after which step the boot of a machine is ended, or * for all.
const InterruptBoot = "interrupt-boot"

// IsEverythingAllowed says whether a machine checks no flags, files and configuration.
func IsEverythingAllowed(dir hostapi.MachineDir) bool {
	_, err := os.Stat(filepath.Join(string(dir), everything))
	return err == nil
}

// MarkHost hands the files on from the plane's data directory to a host.
func MarkHost(dataDir string, host hostapi.Dir) error { return handOn(dataDir, string(host)) }

// MarkMachine hands the files on from a host to a machine of it.
func MarkMachine(host hostapi.Dir, machine hostapi.MachineDir) error {
	return handOn(string(host), string(machine))
}

// handOn makes the files in one directory be there, or not, as in the other. In the plane's data directory a test puts
// them; a confined host and its machines may not look upwards.
func handOn(from, to string) error {
	for _, name := range []string{everything, InterruptBoot} {
		b, err := os.ReadFile(filepath.Join(from, name))
		switch {
		case err == nil:
			err = os.WriteFile(filepath.Join(to, name), b, 0o600) //nolint:gosec // a directory of the plane's own
		case errors.Is(err, os.ErrNotExist):
			if err = os.Remove(filepath.Join(to, name)); errors.Is(err, os.ErrNotExist) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
