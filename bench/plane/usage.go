package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// sample is the usage of a side over a window of time, all its processes together. Memory is in bytes and the median
// over the window, unless said otherwise.
type sample struct {
	rss, anonymous int64
	proportional   int64   // PSS at the end of the window: shared pages counted once
	peak           int64   // highest RSS of each process so far
	cpu            float64 // per cent of one core
}

// usage is that of a set of processes at one moment.
type usage struct {
	rss, anonymous, peak int64
	cpu                  time.Duration
}

// settled lets the processes come to rest, then reads their usage every second for the window.
func settled(ctx context.Context, cfg config, p *processes) (s sample, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.ended())
		}
	}()
	pids := p.pids()
	if err := sleep(ctx, cfg.settle); err != nil {
		return s, err
	}
	first, err := look(pids)
	if err != nil {
		return s, err
	}
	begin, last := time.Now(), first
	rss, anonymous := []int64{first.rss}, []int64{first.anonymous}
	for time.Since(begin) < cfg.window {
		if err := sleep(ctx, time.Second); err != nil {
			return s, err
		}
		if last, err = look(pids); err != nil {
			return s, err
		}
		rss, anonymous = append(rss, last.rss), append(anonymous, last.anonymous)
	}
	s.cpu = 100 * float64(last.cpu-first.cpu) / float64(time.Since(begin))
	s.rss, s.anonymous, s.peak = median(rss), median(anonymous), last.peak
	s.proportional, err = proportional(pids)
	return s, err
}

// effort is what something took: time on the clock, and CPU time of all processes of the side.
// The second hardly depends on what else the machine does.
type effort struct{ clock, cpu time.Duration }

// effortSince returns the effort since begin, when the processes had used the CPU time before.
func (p *processes) effortSince(begin time.Time, before time.Duration) (effort, error) {
	clock := time.Since(begin)
	u, err := look(p.pids())
	return effort{clock: clock, cpu: u.cpu - before}, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func look(pids []int) (usage, error) {
	var u usage
	for _, pid := range pids {
		status, err := kilobytes(fmt.Sprintf("/proc/%d/status", pid), "VmRSS", "RssAnon", "VmHWM")
		if err != nil {
			return u, err
		}
		cpu, err := cpuTime(pid)
		if err != nil {
			return u, err
		}
		u.rss += status["VmRSS"]
		u.anonymous += status["RssAnon"]
		u.peak += status["VmHWM"]
		u.cpu += cpu
	}
	return u, nil
}

func proportional(pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		m, err := kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
		if err != nil {
			return 0, err
		}
		sum += m["Pss"]
	}
	return sum, nil
}

// kilobytes reads lines like "VmRSS:  123 kB" and returns bytes. Every key must be there.
func kilobytes(file string, keys ...string) (map[string]int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err == nil {
			found[key] = n * 1024
		}
	}
	for _, k := range keys {
		if _, ok := found[k]; !ok {
			return nil, fmt.Errorf("%s has no %s", file, k)
		}
	}
	return found, nil
}

// tick is the unit of CPU time in /proc, the same on every Linux machine Go runs on.
const tick = time.Second / 100

// cpuTime is what a process has used so far, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The program's name stands in parentheses and may hold anything; utime and stime are the
	// twelfth and thirteenth field after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}
