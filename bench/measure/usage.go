package measure

import (
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

// CPU is what a process has used so far, and what those of its children have that have ended: polderd
// renders charts in children.
type CPU struct{ Own, Children time.Duration }

// Minus is the difference.
func (c CPU) Minus(d CPU) CPU { return CPU{c.Own - d.Own, c.Children - d.Children} }

// Sum is that of the process and of its children.
func (c CPU) Sum() time.Duration { return c.Own + c.Children }

// FormatChildren formats the part that children used.
func (c CPU) FormatChildren() string { return "rendering " + FormatSeconds(c.Children) }

// CPU is the CPU time that polderd has used so far.
func (p *Plane) CPU() (CPU, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return CPU{}, err
	}
	// The program's name stands in parentheses and may hold anything; utime, stime, cutime and cstime
	// are from the twelfth field on after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 15 {
		return CPU{}, fmt.Errorf("/proc/%d/stat has only %d fields", p.PID(), len(fields))
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

// Memory is the resident set of polderd in MiB now, and the largest since ResetPeakMemory.
func (p *Plane) Memory() (now, peak int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, 0, err
	}
	for _, f := range []struct {
		key string
		to  *int
	}{{"VmRSS:", &now}, {"VmHWM:", &peak}} {
		_, rest, _ := strings.Cut(string(b), f.key)
		if _, err := fmt.Sscan(rest, f.to); err != nil {
			return 0, 0, fmt.Errorf("reading %s %w", f.key, err)
		}
		*f.to >>= 10
	}
	return now, peak, nil
}

// ResetPeakMemory makes the kernel record the largest resident set anew.
func (p *Plane) ResetPeakMemory() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0)
}
