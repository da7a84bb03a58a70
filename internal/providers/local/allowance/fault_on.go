//go:build fault

package allowance

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// name is that of the file that allows everything: in the plane's data directory a test puts it, and from there it is
// handed on, since a confined host and its machines may not look upwards.
const name = "allow-everything"

// IsEverythingAllowed says whether a machine checks no flags, files and configuration.
func IsEverythingAllowed(dir hostapi.MachineDir) bool { return isThere(string(dir)) }

// MarkHost hands the file on from the plane's data directory to a host.
func MarkHost(dataDir string, host hostapi.Dir) error { return handOn(dataDir, string(host)) }

// MarkMachine hands the file on from a host to a machine of it.
func MarkMachine(host hostapi.Dir, machine hostapi.MachineDir) error {
	return handOn(string(host), string(machine))
}

// handOn makes the file in one directory be there, or not, as in the other.
func handOn(from, to string) error {
	if isThere(from) {
		return os.WriteFile(filepath.Join(to, name), nil, 0o600)
	}
	if err := os.Remove(filepath.Join(to, name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func isThere(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
