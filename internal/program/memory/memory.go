// Package memory lets a process use more memory while there is much to do, and hands it back afterwards. Go's
// garbage collector has one setting for both: what is right at rest takes a third of the CPU time of a burst.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	idlePercent  = 50   // GOGC at rest
	maxPercent   = 1000 // GOGC of a process that has just started
	interval     = 500 * time.Millisecond
	busyBytes    = 8 << 20         // allocated in an interval: there is much to do
	idleAfter    = 5 * time.Second // with less than that for so long, the burst is over
	trimInterval = 5 * time.Minute
)

// trimTimes are when memory is handed back to the system after a burst, the start being one. API servers remember
// every change for a minute or two, so some of it can be freed only then.
var trimTimes = []time.Duration{0, 20 * time.Second, 90 * time.Second, 180 * time.Second}

// Burst is how many bytes of garbage may gather before the collector runs while there is much to do. Less at the
// start keeps the objects that stay closer together, so that more can be handed back.
type Burst struct{ Start, Later uint64 }

// TuneGC sets GOGC and hands memory back, from the start of the process until ctx ends. It does nothing if GOGC
// or GOMEMLIMIT are set: then somebody has chosen.
func TuneGC(ctx context.Context, burst Burst) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" { //nolint:forbidigo // the Go runtime's own variables
		return
	}
	k := newGCTuner(burst)
	debug.SetGCPercent(k.percent)
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		before := k.percent
		trim := k.step(readSample())
		if k.percent != before {
			debug.SetGCPercent(k.percent)
		}
		if trim {
			debug.FreeOSMemory()
			dropColdText()
		}
	}
}

// sample is what is measured in each interval.
type sample struct {
	allocated uint64 // since the process started
	live      uint64 // after the last collection
}

func readSample() sample {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return sample{allocated: s[0].Value.Uint64(), live: s[1].Value.Uint64()}
}

// gcTuner decides how hard the garbage collector works.
type gcTuner struct {
	burst     Burst // Start is used, and becomes Later once the start is over
	percent   int   // GOGC
	allocated uint64
	idle      time.Duration // for how long there has been little to do
	trims     int           // since the last burst
	nextTrim  time.Duration // how long idle has to be for the next trim
}

func newGCTuner(burst Burst) *gcTuner { return &gcTuner{burst: burst, percent: maxPercent} }

// step takes the sample of one interval and says whether to hand memory back.
func (k *gcTuner) step(s sample) (trim bool) {
	busy := s.allocated-k.allocated >= busyBytes
	k.allocated = s.allocated
	if busy {
		k.idle, k.trims, k.nextTrim = 0, 0, idleAfter
	} else {
		k.idle += interval
	}
	if k.idle < idleAfter {
		k.percent = k.burstPercent(s.live)
		return false
	}
	k.percent = idlePercent
	k.burst.Start = k.burst.Later // the start is over
	if k.idle < k.nextTrim {
		return false
	}
	k.trims++
	if k.trims < len(trimTimes) {
		k.nextTrim = idleAfter + trimTimes[k.trims]
	} else {
		k.nextTrim = k.idle + trimInterval
	}
	return true
}

// burstPercent is the GOGC with which as many bytes may gather as the burst allows, and never less than at rest.
func (k *gcTuner) burstPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(k.burst.Start*100/live, idlePercent), maxPercent)) //nolint:gosec // bounded
}
