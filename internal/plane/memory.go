package plane

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"time"
)

// settledGCPercent trades a little CPU for memory once the start, which makes most garbage, is over.
const settledGCPercent = 50

// Until it is ready the plane may use this much memory before the collector works hard: it
// would otherwise take a quarter of the start's time.
const (
	startGCPercent   = 400
	startMemoryLimit = 256 << 20
)

// startFast is called before anything is built; keepMemoryLow undoes it.
func startFast() {
	if !operatorChoseGC() {
		debug.SetGCPercent(startGCPercent)
		debug.SetMemoryLimit(startMemoryLimit)
	}
}

// operatorChoseGC says that how hard the collector works is not ours to choose.
func operatorChoseGC() bool {
	return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" //nolint:forbidigo // the Go runtime's own variables
}

// trimTimes are when memory is handed back to the system after the plane became ready. The
// API server remembers every change for a minute or two, so what the start has written is let
// go of only then; later a burst of work leaves the same kind of remains.
var trimTimes = []time.Duration{0, 10 * time.Second, 25 * time.Second, 90 * time.Second, 180 * time.Second}

// trimInterval is how often it is done after that. It costs a collection, a tenth of a second.
const trimInterval = 5 * time.Minute

// keepMemoryLow runs from the moment the plane is ready until ctx ends.
func keepMemoryLow(ctx context.Context) {
	if !operatorChoseGC() {
		debug.SetGCPercent(settledGCPercent)
		debug.SetMemoryLimit(math.MaxInt64)
	}
	var at time.Duration
	for i := 0; ; i++ {
		next := at + trimInterval
		if i < len(trimTimes) {
			next = trimTimes[i]
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next - at):
		}
		at = next
		debug.FreeOSMemory()
		dropColdText()
	}
}
