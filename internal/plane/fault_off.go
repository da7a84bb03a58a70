//go:build !fault

package plane

import (
	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
)

// injectFaults does nothing in the binaries people use; see fault_on.go.
func injectFaults(_ string, stages []supervisor.Stage) []supervisor.Stage { return stages }

// adjustStore changes nothing in the binaries people use; see fault_store.go.
func adjustStore(_ string, cfg etcd.Config) (etcd.Config, error) { return cfg, nil }
