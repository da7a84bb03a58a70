package main

import (
	"context"
	"fmt"
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
	h, pids := host{Status: s}, []int{s.PID}
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			h.machines += p.Memory
			if p.PID != 0 { // else it does not run at the moment
				pids = append(pids, p.PID)
			}
		}
	}
	for _, pid := range pids {
		c, err := process.ReadCPU(pid)
		if err != nil {
			return h, err
		}
		h.cpu += c.Own
	}
	return h, nil
}
