package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
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
	if err := scenario.Sleep(ctx, cfg.settle); err != nil {
		return s, err
	}
	first, err := look(pids)
	if err != nil {
		return s, err
	}
	begin, last := time.Now(), first
	rss, anonymous := []int64{first.rss}, []int64{first.anonymous}
	for time.Since(begin) < cfg.window {
		if err := scenario.Sleep(ctx, time.Second); err != nil {
			return s, err
		}
		if last, err = look(pids); err != nil {
			return s, err
		}
		rss, anonymous = append(rss, last.rss), append(anonymous, last.anonymous)
	}
	s.cpu = 100 * float64(last.cpu-first.cpu) / float64(time.Since(begin))
	s.rss, s.anonymous, s.peak = scenario.Median(rss), scenario.Median(anonymous), last.peak
	s.proportional, err = proportional(pids)
	return s, err
}

// effort is what something took: time on the clock, and CPU time of all processes of the side.
// The second hardly depends on what else the machine does.
type effort struct{ clock, cpu time.Duration }

func (e effort) String() string { return fmt.Sprintf("%s (CPU %s)", e.clock, e.cpu) }

// effortSince returns the effort since begin, when the processes had used the CPU time before.
func (p *processes) effortSince(begin time.Time, before time.Duration) (effort, error) {
	clock := time.Since(begin)
	u, err := look(p.pids())
	return effort{clock: clock, cpu: u.cpu - before}, err
}

func look(pids []int) (usage, error) {
	var u usage
	for _, pid := range pids {
		status, err := process.ReadMemory(pid, "status", "VmRSS", "RssAnon", "VmHWM")
		if err != nil {
			return u, err
		}
		cpu, err := process.ReadCPU(pid)
		if err != nil {
			return u, err
		}
		u.rss += status["VmRSS"]
		u.anonymous += status["RssAnon"]
		u.peak += status["VmHWM"]
		u.cpu += cpu.Own
	}
	return u, nil
}

func proportional(pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		m, err := process.ReadMemory(pid, "smaps_rollup", "Pss")
		if err != nil {
			return 0, err
		}
		sum += m["Pss"]
	}
	return sum, nil
}
