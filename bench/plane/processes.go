package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
)

// Poll intervals are the error of the times in the table: short for one answer, longer
// where polling itself is work for the side that is polled.
const (
	soon   = 20 * time.Millisecond
	seldom = 250 * time.Millisecond
)

// processes are those of one side. They and their files live until close.
type processes struct {
	dir     string // for data, keys and logs; short, since sockets will be in it
	timeout time.Duration
	all     []*process.Process // in the order they were started
}

func newProcesses(cfg config) (*processes, error) {
	dir, err := os.MkdirTemp("", "polder-bench-") // mode 0700
	return &processes{dir: dir, timeout: cfg.timeout}, err
}

func (p *processes) path(elem ...string) string {
	return filepath.Join(append([]string{p.dir}, elem...)...)
}

func (p *processes) start(program string, args ...string) (*process.Process, error) {
	r, err := process.Start(p.dir, program, args...)
	if err == nil {
		p.all = append(p.all, r)
	}
	return r, err
}

func (p *processes) pids() []int {
	var out []int
	for _, r := range p.all {
		out = append(out, r.PID())
	}
	return out
}

// await calls ask until it returns nil. It gives up when a process has ended or time is up, and then returns the last
// error too.
func (p *processes) await(ctx context.Context, what string, every time.Duration,
	ask func(context.Context) error) error {
	return measure.Poll{Every: every, Timeout: p.timeout, Stop: p.ended}.Do(ctx, what, ask)
}

// ended reports the first process that has ended by itself, with the last lines of its log.
func (p *processes) ended() error {
	for _, r := range p.all {
		if err := r.EndedError(); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all processes, the last started first, each by its own id.
func (p *processes) stop() {
	for _, r := range slices.Backward(p.all) {
		if err := r.Stop(); err != nil {
			scenario.Logf("%v", err)
		}
	}
	p.all = nil
}

// close ends all processes and removes everything they wrote.
func (p *processes) close() error {
	p.stop()
	return os.RemoveAll(p.dir)
}
