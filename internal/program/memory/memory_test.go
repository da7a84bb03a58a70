package memory

import (
	"testing"
	"time"
)

const mib = 1 << 20

// run steps through some time with an allocation rate, and counts how often memory is handed back.
func (k *gcTuner) run(d time.Duration, perSecond, live uint64) (trims int) {
	for range d / interval {
		if k.step(sample{allocated: k.allocated + perSecond*uint64(interval)/uint64(time.Second), live: live}) {
			trims++
		}
	}
	return trims
}

func TestCollectorFollowsWork(t *testing.T) {
	k := newGCTuner(Burst{Start: 128 * mib, Later: 256 * mib})
	for _, c := range []struct {
		what      string
		lasts     time.Duration
		perSecond uint64
		live      uint64
		percent   int
		trims     int
	}{
		{"start, before the first collection", time.Second, 200 * mib, 0, maxPercent, 0},
		{"start", time.Second, 200 * mib, 64 * mib, 200, 0},
		{"a pause in the start", 4 * time.Second, mib, 64 * mib, 200, 0},
		{"rest", 10 * time.Second, mib, 64 * mib, idlePercent, 1},
		{"longer rest", 4 * time.Minute, mib, 64 * mib, idlePercent, 3},
		{"long rest", 20 * time.Minute, mib, 64 * mib, idlePercent, 4},
		{"work", time.Second, 100 * mib, 128 * mib, 200, 0},
		{"work with much that lives", time.Second, 100 * mib, 1024 * mib, idlePercent, 0},
		{"rest after work", 30 * time.Second, mib, 64 * mib, idlePercent, 2},
	} {
		if trims := k.run(c.lasts, c.perSecond, c.live); trims != c.trims || k.percent != c.percent {
			t.Errorf("%s: GOGC %d and memory handed back %d times, want %d and %d", c.what, k.percent, trims, c.percent, c.trims)
		}
	}
}

func TestReadSampleCounts(t *testing.T) {
	before := readSample()
	sink = make([]byte, 64*mib)
	if after := readSample(); after.allocated < before.allocated+64*mib {
		t.Errorf("allocated %d before and %d after 64 MiB", before.allocated, after.allocated)
	}
}

var sink []byte
