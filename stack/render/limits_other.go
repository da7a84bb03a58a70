//go:build !linux

package render

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// enforce watches the memory from inside: these systems do not limit what Go takes. Time is limited
// by the parent.
func (l Limits) enforce() error {
	debug.SetMemoryLimit(l.Memory / 2)
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			var m runtime.MemStats
			if runtime.ReadMemStats(&m); m.Sys > uint64(2*l.Memory) { //nolint:gosec // positive
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(1) //nolint:forbidigo // the process is for one task, and that is over
			}
		}
	}()
	return nil
}
