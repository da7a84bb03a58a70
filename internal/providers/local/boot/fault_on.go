//go:build fault

package boot

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// injectCrash kills the process after the step that the file "interrupt-boot" in the plane's data
// directory names; once per machine and step. "*" names every step.
func injectCrash(dir hostapi.MachineDir, step string) error {
	b, err := os.ReadFile(filepath.Join(string(dir), "..", "..", "..", "..", "interrupt-boot"))
	if err != nil {
		return nil
	}
	if want := strings.TrimSpace(string(b)); want != "*" && want != step {
		return nil
	}
	mark := filepath.Join(string(dir), "interrupted-after-"+filepath.Base(step))
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}
