package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// small makes clusters of one control plane and two workers, one after the other.
func (b *bench) small(ctx context.Context, rounds int) error {
	var made, gone []time.Duration
	for i := range rounds {
		name := fmt.Sprintf("small-%d", i)
		took, err := b.create(ctx, name, newVersion, 1, 2)
		if err != nil {
			return err
		}
		made = append(made, took)
		if i == rounds-1 {
			if err := b.idle(ctx, name); err != nil {
				return err
			}
		}
		if took, err = b.remove(ctx, name); err != nil {
			return err
		}
		gone = append(gone, took)
	}
	b.add(fmt.Sprintf("1 + 2 ready, median of %d", rounds), "10 s", "%.1f s (%.1f to %.1f)", median(made).Seconds(), slices.Min(made).Seconds(), slices.Max(made).Seconds())
	b.add(fmt.Sprintf("delete, median of %d", rounds), "5 s", "%.1f s", median(gone).Seconds())
	return nil
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// idle measures a cluster that nobody uses.
func (b *bench) idle(ctx context.Context, name string) error {
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	s, err := b.status(ctx, name)
	if err != nil {
		return err
	}
	before, begin := cpuOf(s), time.Now()
	if err := sleep(ctx, 30*time.Second); err != nil {
		return err
	}
	if s, err = b.status(ctx, name); err != nil {
		return err
	}
	b.add("idle CPU of a cluster", "5 % of a core", "%.1f %%", 100*(cpuOf(s)-before).Seconds()/time.Since(begin).Seconds())
	var machine uint64
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			b.add("  anonymous memory of "+p.Name, "", "%d MB", p.Memory>>20)
			machine += p.Memory
		}
	}
	b.add("  anonymous memory of the host", "", "%d MB", s.Memory>>20)
	b.add("anonymous memory of a control plane", "300 MB", "%d MB, with its host %d MB", machine>>20, (machine+s.Memory)>>20)
	b.add("one-node clusters in 8 GiB, by that", "", "%d", (8<<30-300<<20)/(machine+s.Memory))
	return nil
}

// large makes one cluster with three control planes, upgrades it, and gives it many nodes.
func (b *bench) large(ctx context.Context, nodes int) error {
	took, err := b.create(ctx, "large", oldVersion, 3, 2)
	if err != nil {
		return err
	}
	b.add("3 + 2 ready", "40 s", "%.1f s", took.Seconds())
	if took, err = b.change(ctx, "large", newVersion, 3, 2); err != nil {
		return err
	}
	b.add("upgrade of 3 + 2 by one minor", "", "%.1f s", took.Seconds())
	if took, err = b.change(ctx, "large", newVersion, 1, 2); err != nil {
		return err
	}
	b.add("3 to 1 control planes", "", "%.1f s", took.Seconds())
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	before, err := b.memory(ctx, "large")
	if err != nil {
		return err
	}
	if took, err = b.change(ctx, "large", newVersion, 1, int32(nodes)); err != nil {
		return err
	}
	b.add(fmt.Sprintf("%d nodes ready", nodes), "", "%.1f s", took.Seconds())
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	after, err := b.memory(ctx, "large")
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("anonymous memory of %d nodes, host", nodes), "50 MB", "%d MB", (int64(after.host)-int64(before.host))>>20)
	b.add("  and in the control plane's processes", "", "%d MB", (int64(after.machines)-int64(before.machines))>>20)
	took, err = b.remove(ctx, "large")
	b.add(fmt.Sprintf("delete with %d nodes", nodes), "", "%.1f s", took.Seconds())
	return err
}

type memory struct{ host, machines uint64 }

func (b *bench) memory(ctx context.Context, name string) (memory, error) {
	s, err := b.status(ctx, name)
	m := memory{host: s.Memory}
	for _, x := range s.Machines {
		for _, p := range x.Processes {
			m.machines += p.Memory
		}
	}
	return m, err
}

func (b *bench) status(ctx context.Context, name string) (hostapi.Status, error) {
	l := launch.Launcher{HostsDir: hostapi.HostsDir(b.data)}
	all, err := l.Clusters()
	if err != nil {
		return hostapi.Status{}, err
	}
	for _, c := range all {
		if c.Name == name {
			return hostapi.NewClient(l.Dir(c.UID)).Status(ctx)
		}
	}
	return hostapi.Status{}, fmt.Errorf("no host for %s", name)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
