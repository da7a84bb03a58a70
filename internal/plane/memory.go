package plane

import (
	"os"
	"runtime/debug"
)

// settledGCPercent trades a little CPU for memory once the start, which makes most garbage, is over.
const settledGCPercent = 50

// settleMemory is called once everything is ready: it hands what the start has left over back
// to the system and makes the collector work a little harder from then on. An operator who
// sets GOGC has decided for themselves.
func settleMemory() {
	if os.Getenv("GOGC") == "" { //nolint:forbidigo // the Go runtime's own variable
		debug.SetGCPercent(settledGCPercent)
	}
	debug.FreeOSMemory()
}
