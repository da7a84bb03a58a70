package testenv

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Memory is what a process has of the machine's memory, in bytes.
type Memory struct{ RSS, Peak int64 }

func (m Memory) String() string { return fmt.Sprintf("%d MiB, at most %d MiB", m.RSS>>20, m.Peak>>20) }

// Memory is that of polderd.
func (p *Plane) Memory(t testing.TB) Memory {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	var m Memory
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			m.RSS = kib << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			m.Peak = kib << 10
		}
	}
	if m.RSS == 0 || m.Peak == 0 {
		t.Fatalf("process %d says nothing about its memory", p.PID())
	}
	return m
}

// OwnGC are variables for a polderd that collects garbage as it does for people; tests let it gather.
func OwnGC() []string { return []string{"GOGC="} }

// OnOneCore calls f on one core; the processes that f starts stay there.
func OnOneCore(t testing.TB, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
	}()
	f()
}
