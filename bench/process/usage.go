package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc, the same on every Linux machine Go runs on.
const clockTick = time.Second / 100

// CPU is what a process has used so far, in user and kernel mode, and what those of its children have that have ended:
// polderd renders charts in children.
type CPU struct{ Own, Children time.Duration }

// Minus is the difference.
func (c CPU) Minus(d CPU) CPU { return CPU{c.Own - d.Own, c.Children - d.Children} }

// Sum is that of the process and of its children.
func (c CPU) Sum() time.Duration { return c.Own + c.Children }

// ReadCPU reads the CPU time of a process.
func ReadCPU(pid int) (CPU, error) {
	file := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(file)
	if err != nil {
		return CPU{}, err
	}
	c, err := parseCPU(b)
	if err != nil {
		return CPU{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// parseCPU parses /proc/PID/stat. The program's name stands in parentheses and may hold anything; utime, stime, cutime
// and cstime are from the twelfth field on after it.
func parseCPU(stat []byte) (CPU, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return CPU{}, fmt.Errorf("has only %d fields", len(fields))
	}
	var ticks [4]time.Duration
	var errs []error
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		ticks[i] = time.Duration(n) * clockTick
		errs = append(errs, err)
	}
	return CPU{Own: ticks[0] + ticks[1], Children: ticks[2] + ticks[3]}, errors.Join(errs...)
}

// ReadMemory reads fields of /proc/PID/status or /proc/PID/smaps_rollup, in bytes. Every one must be there; a process
// that has ended has none.
func ReadMemory(pid int, file string, fields ...string) (map[string]int64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := parseMemory(b)
	for _, k := range fields {
		if _, ok := found[k]; !ok {
			return nil, fmt.Errorf("%s has no %s", path, k)
		}
	}
	return found, nil
}

// parseMemory parses lines like "VmRSS:  123 kB"; others do not matter.
func parseMemory(b []byte) map[string]int64 {
	found := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err == nil {
			found[key] = n * 1024
		}
	}
	return found
}
