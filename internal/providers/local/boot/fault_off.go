//go:build !fault

package boot

import "github.com/polder-kaas/polder/internal/providers/local/hostapi"

// injectCrash does nothing; binaries for tests of faults have another.
func injectCrash(hostapi.MachineDir, string) error { return nil }
