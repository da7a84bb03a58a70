package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// tick is the kernel's unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that the host and all its processes have used so far.
func cpuOf(s hostapi.Status) time.Duration {
	total := cpu(s.PID)
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			total += cpu(p.PID)
		}
	}
	return total
}

func cpu(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name before may hold spaces
	f := strings.Fields(rest)
	var sum time.Duration
	for _, i := range []int{11, 12} { // utime and stime
		if len(f) > i {
			n, _ := strconv.ParseInt(f[i], 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
