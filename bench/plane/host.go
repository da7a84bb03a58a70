package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hostTime is how the CPU time of the whole machine was spent, in ticks.
type hostTime struct{ stolen, total int64 }

// readHostTime reads the first line of /proc/stat: "cpu", then user, nice, system, idle, iowait,
// irq, softirq, steal; what follows is part of the first two.
func readHostTime() (t hostTime, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, err
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 {
		return t, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for _, f := range fields[1:9] {
		n, e := strconv.ParseInt(f, 10, 64)
		err = errors.Join(err, e)
		t.total += n
		t.stolen = n // the last one
	}
	return t, err
}

func (t hostTime) plus(u hostTime) hostTime  { return hostTime{t.stolen + u.stolen, t.total + u.total} }
func (t hostTime) minus(u hostTime) hostTime { return hostTime{t.stolen - u.stolen, t.total - u.total} }

// stolenShare is the share of this machine's CPU time, in per cent, that its host gave to
// others. Where it is high, times on the clock mean little.
func (t hostTime) stolenShare() float64 {
	if t.total == 0 {
		return 0
	}
	return 100 * float64(t.stolen) / float64(t.total)
}
