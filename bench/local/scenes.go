package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
)

const (
	settle     = 45 * time.Second
	idleWindow = 30 * time.Second
)

// measureSmall makes clusters of one control plane and two workers, one after the other.
func (b *bench) measureSmall(ctx context.Context) (rows scenario.Rows, err error) {
	var made, gone []time.Duration
	for i := range b.rounds {
		name := fmt.Sprintf("small-%d", i)
		took, err := b.createCluster(ctx, name, shape{newVersion, 1, 2})
		if err != nil {
			return rows, err
		}
		made = append(made, took)
		if i == b.rounds-1 {
			if rows, err = b.measureIdle(ctx, name); err != nil {
				return rows, err
			}
		}
		if took, err = b.deleteCluster(ctx, name); err != nil {
			return rows, err
		}
		gone = append(gone, took)
	}
	rows.AddWithAim(fmt.Sprintf("1 + 2 ready, median of %d", b.rounds), "10 s", "%.1f s (%.1f to %.1f)",
		scenario.Median(made).Seconds(), slices.Min(made).Seconds(), slices.Max(made).Seconds())
	rows.AddWithAim(fmt.Sprintf("delete, median of %d", b.rounds), "5 s", "%.1f s", scenario.Median(gone).Seconds())
	return rows, nil
}

// measureIdle measures a cluster that nobody uses.
func (b *bench) measureIdle(ctx context.Context, name string) (rows scenario.Rows, err error) {
	if err := scenario.Sleep(ctx, settle); err != nil {
		return rows, err
	}
	before, err := b.readHost(ctx, name)
	if err != nil {
		return rows, err
	}
	begin := time.Now()
	if err := scenario.Sleep(ctx, idleWindow); err != nil {
		return rows, err
	}
	after, err := b.readHost(ctx, name)
	if err != nil {
		return rows, err
	}
	cpu := 100 * (after.cpu - before.cpu).Seconds() / time.Since(begin).Seconds()
	rows.AddWithAim("idle CPU of a cluster", "5 % of a core", "%.1f %%", cpu)
	for _, m := range after.Machines {
		for _, p := range m.Processes {
			rows.AddWithAim("  anonymous memory of "+p.Name, "", "%d MB", p.Memory>>20)
		}
	}
	all := after.machines + after.Memory
	rows.AddWithAim("  anonymous memory of the host", "", "%d MB", after.Memory>>20)
	rows.AddWithAim("anonymous memory of a control plane", "300 MB", "%d MB, with its host %d MB",
		after.machines>>20, all>>20)
	rows.AddWithAim("one-node clusters in 8 GiB, by that", "", "%d", (8<<30-300<<20)/all)
	return rows, nil
}

// measureLarge makes one cluster with three control planes, upgrades it, and gives it many nodes.
func (b *bench) measureLarge(ctx context.Context) (rows scenario.Rows, err error) {
	const name = "large"
	took, err := b.createCluster(ctx, name, shape{oldVersion, 3, 2})
	if err != nil {
		return rows, err
	}
	rows.AddWithAim("3 + 2 ready", "40 s", "%.1f s", took.Seconds())
	for _, change := range []struct {
		what string
		to   shape
	}{
		{"upgrade of 3 + 2 by one minor", shape{newVersion, 3, 2}},
		{"3 to 1 control planes", shape{newVersion, 1, 2}},
	} {
		if took, err = b.changeCluster(ctx, name, change.to); err != nil {
			return rows, err
		}
		rows.AddWithAim(change.what, "", "%.1f s", took.Seconds())
	}
	if err := b.measureNodes(ctx, name, &rows); err != nil {
		return rows, err
	}
	if took, err = b.deleteCluster(ctx, name); err != nil {
		return rows, err
	}
	rows.AddWithAim(fmt.Sprintf("delete with %d nodes", b.nodes), "", "%.1f s", took.Seconds())
	return rows, nil
}

// measureNodes adds nodes to a cluster with one control plane.
func (b *bench) measureNodes(ctx context.Context, name string, rows *scenario.Rows) error {
	before, err := b.readSettledHost(ctx, name)
	if err != nil {
		return err
	}
	took, err := b.changeCluster(ctx, name, shape{newVersion, 1, int32(b.nodes)})
	if err != nil {
		return err
	}
	rows.AddWithAim(fmt.Sprintf("%d nodes ready", b.nodes), "", "%.1f s", took.Seconds())
	after, err := b.readSettledHost(ctx, name)
	if err != nil {
		return err
	}
	rows.AddWithAim(fmt.Sprintf("anonymous memory of %d nodes, host", b.nodes), "50 MB", "%d MB",
		(int64(after.Memory)-int64(before.Memory))>>20)
	rows.AddWithAim("  and in the control plane's processes", "", "%d MB",
		(int64(after.machines)-int64(before.machines))>>20)
	return nil
}

// measureMany makes clusters of one control plane and one worker, all at once, until every one is ready.
func (b *bench) measureMany(ctx context.Context) (rows scenario.Rows, err error) {
	begin := time.Now()
	names, errs := make([]string, b.many), make([]error, b.many)
	var all sync.WaitGroup
	for i := range names {
		names[i] = fmt.Sprintf("many-%d", i)
		all.Go(func() { _, errs[i] = b.createCluster(ctx, names[i], shape{newVersion, 1, 1}) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return rows, err
	}
	rows.AddWithAim(fmt.Sprintf("%d clusters at once, all ready", b.many), "all", "%.0f s", time.Since(begin).Seconds())
	used, err := b.readMany(ctx, names)
	if err != nil {
		return rows, err
	}
	rows.AddWithAim("  anonymous memory of each", "", "%d MB", used.memory/b.many>>20)
	rows.AddWithAim("  threads of each", "", "%d", used.threads/b.many)
	rows.AddWithAim("  file watchers of all (128 for a user)", "128", "%d", used.watchers)
	return rows, nil
}
