package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits of each process of a cluster. They are far above what a cluster of hundreds of nodes needs, and far below what
// would take a machine down.
const (
	maxData      = 8 << 30  // bytes of memory a process can write to
	maxFileSize  = 16 << 30 // etcd stops at 8 GiB by itself
	maxProcesses = 8192     // threads of the whole cluster; only a user namespace counts them apart from all others
)

// setLimits limits this process and all it starts.
func setLimits(namespaces bool) error {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: maxData, unix.RLIMIT_FSIZE: maxFileSize}
	if namespaces {
		limits[unix.RLIMIT_NPROC] = maxProcesses
	}
	for resource, limit := range limits {
		var have unix.Rlimit
		if err := unix.Getrlimit(resource, &have); err != nil {
			return fmt.Errorf("limiting resources: %w", err)
		}
		limit = min(limit, have.Max)
		err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
		if err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("limiting resources: %w", err)
		}
	}
	return nil
}
