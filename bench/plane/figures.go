package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
)

// result has the figures of one side. What was not measured is zero.
type result struct {
	starts      []effort // each from the first exec, on an empty plane
	readyLoaded effort   // the same, started with all clusters there
	build       effort   // from the first cluster created to the last machine
	idle        sample   // empty
	loaded      sample   // with all clusters
	binaries    int64    // bytes of all programs
	host        hostTime // of the whole machine meanwhile
}

// ready is the median of all starts.
func (r result) ready() (e effort) {
	if len(r.starts) == 0 {
		return e
	}
	var clock, cpu []time.Duration
	for _, s := range r.starts {
		clock, cpu = append(clock, s.clock), append(cpu, s.cpu)
	}
	return effort{clock: scenario.Median(clock), cpu: scenario.Median(cpu)}
}

// addStarts starts a side so many times.
func (r *result) addStarts(n int, start func() (effort, error)) error {
	for range n {
		e, err := start()
		if err != nil {
			return err
		}
		r.starts = append(r.starts, e)
	}
	scenario.Logf("times to be ready: %v", r.starts)
	return nil
}

// newScene is a scene that adds to the figures of a side, with what the machine's host took meanwhile.
func newScene(name string, side *result, measure func(context.Context) error) scenario.Scene {
	return scenario.Scene{Name: name, Run: func(ctx context.Context) (scenario.Rows, error) {
		before, err := readHostTime()
		if err != nil {
			return nil, err
		}
		err = measure(ctx)
		after, hostErr := readHostTime()
		side.host = side.host.plus(after.minus(before))
		return nil, errors.Join(err, hostErr)
	}}
}

// measurePrograms measures what is on disk.
func (b *bench) measurePrograms() error {
	var errs [3]error
	b.cliSize, errs[0] = size(b.program("polder"))
	b.separate.binaries, errs[1] = size(separatePrograms(b.config)...)
	b.fresh.binaries, errs[2] = size(b.program("polderd"))
	b.restarted.binaries = b.fresh.binaries
	return errors.Join(errs[:]...)
}

// measureVersion runs the smallest command, which is mostly start-up.
func (b *bench) measureVersion(ctx context.Context) (scenario.Rows, error) {
	all, err := scenario.Repeat(10, func() error { return exec.CommandContext(ctx, b.program("polder"), "version").Run() })
	if err != nil {
		return nil, fmt.Errorf("running polder version: %w", err)
	}
	b.cliTime = scenario.Median(all)
	return nil, nil
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
