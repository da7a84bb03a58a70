//go:build !fault

package plane

import "github.com/polder-kaas/polder/internal/plane/supervisor"

// injectFaults does nothing in the binaries people use; see fault_on.go.
func injectFaults(_ string, stages []supervisor.Stage) []supervisor.Stage { return stages }
