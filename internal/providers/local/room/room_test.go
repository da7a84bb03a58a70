package room

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestCheck(t *testing.T) {
	enough := Room{Memory: 3 * memoryPerMachine, Disk: 3 * diskPerMachine, Threads: 3 * threadsPerMachine, Files: filesPerProcess}
	for name, c := range map[string]struct {
		change   func(*Room)
		machines int
		want     string
	}{
		"enough":              {func(*Room) {}, 3, ""},
		"none is said":        {func(*Room) {}, 0, ""},
		"more machines":       {func(*Room) {}, 4, "1050 MiB of memory left, and the cluster needs about 1400 MiB; delete clusters"},
		"too little memory":   {func(r *Room) { r.Memory = 1 << 20 }, 1, "1 MiB of memory left, and the cluster needs about 350 MiB"},
		"too little disk":     {func(r *Room) { r.Disk = 2 << 20 }, 1, "the disk with polderd's data directory has 2 MiB left, and the cluster needs about 256 MiB"},
		"too few threads":     {func(r *Room) { r.Threads = 7 }, 1, "7 more threads, and the cluster needs about 60; raise the limit with ulimit -u"},
		"too few open files":  {func(r *Room) { r.Files = 256 }, 1, "may open 256 files, and the cluster needs 1024; raise the limit with ulimit -Hn"},
		"no limit of threads": {func(r *Room) { r.Threads = math.MaxUint64 }, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := enough
			c.change(&r)
			err := r.Check(c.machines)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestAvailableMemory(t *testing.T) {
	proc := fstest.MapFS{"meminfo": {Data: []byte("MemTotal:  9000 kB\nMemAvailable:  4096 kB\n")}}
	limit := func(maximum, current string) fstest.MapFS {
		return fstest.MapFS{"memory.max": {Data: []byte(maximum + "\n")}, "memory.current": {Data: []byte(current + "\n")}}
	}
	for name, c := range map[string]struct {
		cgroup fstest.MapFS
		want   uint64
	}{
		"no cgroup":       {fstest.MapFS{}, 4096 << 10},
		"no limit":        {limit("max", "5"), 4096 << 10},
		"a lower limit":   {limit("1048576", "48576"), 1000000},
		"a higher limit":  {limit("1073741824", "5"), 4096 << 10},
		"all of it taken": {limit("10", "20"), 0},
	} {
		if got, err := availableMemory(proc, c.cgroup); got != c.want || err != nil {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if _, err := availableMemory(fstest.MapFS{}, fstest.MapFS{}); err == nil {
		t.Error("no error without meminfo")
	}
}

func TestCountThreads(t *testing.T) {
	status := func(uid, threads string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("Name:\tx\nUid:\t" + uid + "\t0\t0\t0\nThreads:\t" + threads + "\n")}
	}
	proc := fstest.MapFS{"1/status": status("0", "5"), "20/status": status("7", "3"), "21/status": status("7", "4"), "self/status": status("7", "100")}
	if n, err := countThreads(proc, 7); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What this computer says is plausible.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.TempDir())
	if err != nil || r.Memory < 1<<20 || r.Memory > 1<<50 || r.Disk == 0 || r.Files == 0 || r.Threads == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	before, err := countThreads(os.DirFS("/proc"), os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	const more = 8
	end := make(chan struct{})
	defer close(end)
	for range more {
		go func() { runtime.LockOSThread(); <-end }()
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		n, err := countThreads(os.DirFS("/proc"), os.Getuid())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d threads before, %d after %d were started: %v", before, n, more, err)
		}
		if n >= before+more/2 { // others may have ended meanwhile
			return
		}
	}
}
