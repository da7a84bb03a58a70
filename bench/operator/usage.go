package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc, the same on every Linux machine Go runs on.
const tick = time.Second / 100

// cpu is what a process has used so far, and what those of its children have that have ended: polderd
// renders charts in children.
type cpu struct{ own, children time.Duration }

func (c cpu) minus(d cpu) cpu { return cpu{c.own - d.own, c.children - d.children} }

func (c cpu) sum() time.Duration { return c.own + c.children }

// rendering is the part of it that children used.
func (c cpu) rendering() string { return "rendering " + seconds(c.children) }

func (p *plane) cpu() (cpu, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return cpu{}, err
	}
	// The program's name stands in parentheses and may hold anything; utime, stime, cutime and cstime
	// are from the twelfth field on after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 15 {
		return cpu{}, fmt.Errorf("/proc/%d/stat has only %d fields", p.pid(), len(fields))
	}
	var ticks [4]time.Duration
	var errs []error
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		ticks[i] = time.Duration(n) * tick
		errs = append(errs, err)
	}
	return cpu{own: ticks[0] + ticks[1], children: ticks[2] + ticks[3]}, errors.Join(errs...)
}

// memory is the resident set of polderd in MiB now, and the largest since forgetPeak.
func (p *plane) memory() (now, peak int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
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

// forgetPeak makes the kernel begin anew with the largest resident set.
func (p *plane) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid()), []byte("5"), 0)
}
