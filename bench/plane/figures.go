package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// result has the figures of one side. What was not measured is zero.
type result struct {
	ready       effort  // from the first exec, on an empty plane
	readyLoaded effort  // the same, started with all clusters there
	build       effort  // from the first cluster created to the last machine
	idle        sample  // empty
	loaded      sample  // with all clusters
	binaries    int64   // bytes of all programs
	stolen      float64 // per cent of the machine's CPU time its host took meanwhile
}

// figures are the columns of the table.
type figures struct {
	separate  result
	fresh     result // polderd on an empty directory
	restarted result // polderd on its own data
	cliSize   int64
	cliTime   time.Duration
}

// measure runs everything, one side after the other.
func measure(ctx context.Context, cfg config) (figs figures, err error) {
	if err := warm(append(separatePrograms(cfg), cfg.program("polder"), cfg.program("polderd"))...); err != nil {
		return figs, fmt.Errorf("%w; run bench/plane/run, which builds everything", err)
	}
	if figs.cliSize, err = size(cfg.program("polder")); err != nil {
		return figs, err
	}
	if figs.cliTime, err = timeVersion(ctx, cfg); err != nil {
		return figs, fmt.Errorf("running polder version: %w", err)
	}
	if figs.separate, err = measureSeparate(ctx, cfg); err != nil {
		return figs, fmt.Errorf("separate processes: %w", err)
	}
	if figs.fresh, figs.restarted, err = measurePolderd(ctx, cfg); err != nil {
		return figs, fmt.Errorf("polderd: %w", err)
	}
	return figs, nil
}

// medianReady makes r.ready the median of cfg.starts starts, of which r has the first.
func medianReady(cfg config, r *result, start func() (effort, error)) error {
	clock, cpu := []time.Duration{r.ready.clock}, []time.Duration{r.ready.cpu}
	for range cfg.starts - 1 {
		e, err := start()
		if err != nil {
			return err
		}
		clock, cpu = append(clock, e.clock), append(cpu, e.cpu)
	}
	cfg.progress.Printf("times to be ready: %v, of CPU: %v", clock, cpu)
	r.ready = effort{clock: median(clock), cpu: median(cpu)}
	return nil
}

// warm reads programs, so that a start does not wait for the disk. It is repeated before each
// start, since some kernels drop what was not used for a minute.
func warm(programs ...string) error {
	for _, p := range programs {
		if _, err := os.ReadFile(p); err != nil {
			return err
		}
	}
	return nil
}

func size(paths ...string) (int64, error) {
	var sum int64
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

// timeVersion is the median of ten runs of the smallest command, which is mostly start-up.
func timeVersion(ctx context.Context, cfg config) (time.Duration, error) {
	var all []time.Duration
	for range 10 {
		begin := time.Now()
		if err := exec.CommandContext(ctx, cfg.program("polder"), "version").Run(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
	}
	return median(all), nil
}

// median is the upper one if there are two.
func median[T int64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
