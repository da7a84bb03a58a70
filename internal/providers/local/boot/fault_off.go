//go:build !fault

package boot

import "github.com/polder-kaas/polder/internal/providers/local/hostapi"

// injectCrash does nothing; binaries built with the tag fault have another.
func injectCrash(hostapi.MachineDir, string) error { return nil }
