package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// host is what the host of a cluster says, and what it uses with all its processes.
type host struct {
	hostapi.Status
	machines uint64 // anonymous bytes of the machines' processes
	cpu      time.Duration
}

// readHost asks the host of a cluster.
func (b *bench) readHost(ctx context.Context, name string) (host, error) {
	l := launch.Launcher{HostsDir: hostapi.HostsDir(b.Data())}
	all, err := l.Clusters()
	if err != nil {
		return host{}, err
	}
	for _, c := range all {
		if c.Name == name {
			s, err := hostapi.NewClient(l.Dir(c.UID)).Status(ctx)
			if err != nil {
				return host{}, err
			}
			return readUsage(s)
		}
	}
	return host{}, fmt.Errorf("no host for %s", name)
}

// readSettledHost asks the host after some time without changes.
func (b *bench) readSettledHost(ctx context.Context, name string) (host, error) {
	if err := scenario.Sleep(ctx, settle); err != nil {
		return host{}, err
	}
	return b.readHost(ctx, name)
}

func readUsage(s hostapi.Status) (host, error) {
	h := host{Status: s}
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			h.machines += p.Memory
		}
	}
	for _, pid := range h.pids() {
		c, err := process.ReadCPU(pid)
		if err != nil {
			return h, err
		}
		h.cpu += c.Own
	}
	return h, nil
}

// pids are those of the host and of what it runs.
func (h host) pids() []int {
	all := []int{h.PID}
	for _, m := range h.Machines {
		for _, p := range m.Processes {
			if p.PID != 0 { // else it does not run at the moment
				all = append(all, p.PID)
			}
		}
	}
	return all
}

// manyUsage is what several clusters use together.
type manyUsage struct{ memory, threads, watchers int }

func (b *bench) readMany(ctx context.Context, names []string) (u manyUsage, err error) {
	for _, name := range names {
		h, err := b.readHost(ctx, name)
		if err != nil {
			return u, err
		}
		u.memory += int(h.machines + h.Memory)
		for _, pid := range h.pids() {
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
			if err != nil {
				return u, err
			}
			u.threads += len(threads)
			files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			if err != nil {
				return u, err
			}
			for _, f := range files {
				if to, err := os.Readlink(f); err == nil && strings.Contains(to, "inotify") {
					u.watchers++
				}
			}
		}
	}
	return u, nil
}
