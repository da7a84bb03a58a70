//go:build !fault

package boot

import "github.com/polder-kaas/polder/internal/provider/local/hostapi"

// interrupt does nothing; binaries for tests of faults have another.
func interrupt(hostapi.MachineDir, string) error { return nil }
