package main

import (
	"context"
	"fmt"
	"time"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

// Only the program for faults can run local clusters that are not confined.
var (
	confined   = measure.Variant{Program: "bin/polderd-fault"}
	unconfined = measure.Variant{Program: "bin/polderd-fault", Env: []string{"POLDER_OFF_CONFINEMENT=1"}}
)

// cost is what clusters of one control plane and two workers took.
type cost struct {
	ready  []time.Duration
	memory []int64 // anonymous bytes of all processes, a moment after
}

// measureConfinement makes clusters in turns on two planes, one of which does not confine them.
func (b *bench) measureConfinement(ctx context.Context) (rows scenario.Rows, err error) {
	var with, without cost
	err = confined.WithPlane(ctx, func(one *measure.Plane) error {
		return unconfined.WithPlane(ctx, func(other *measure.Plane) error {
			on, off := &bench{Plane: one}, &bench{Plane: other}
			for _, plane := range []*bench{on, off} {
				if err := plane.installClass(ctx); err != nil {
					return err
				}
			}
			for i := range b.rounds {
				if err := on.addCost(ctx, i, true, &with); err != nil {
					return err
				}
				if err := off.addCost(ctx, i, false, &without); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return rows, err
	}
	more := scenario.Median(with.ready) - scenario.Median(without.ready)
	rows.AddWithAim(fmt.Sprintf("confinement: time to ready, medians of %d", b.rounds), "0.5 s more", "%+.2f s (%.2f s, %.2f s without)",
		more.Seconds(), scenario.Median(with.ready).Seconds(), scenario.Median(without.ready).Seconds())
	moreMemory := scenario.Median(with.memory) - scenario.Median(without.memory)
	rows.AddWithAim("  and anonymous memory", "10 MB more", "%+.1f MB (%d MB, %d MB without)",
		float64(moreMemory)/(1<<20), scenario.Median(with.memory)>>20, scenario.Median(without.memory)>>20)
	return rows, nil
}

// addCost makes a cluster, adds what it took, and deletes it.
func (b *bench) addCost(ctx context.Context, round int, confined bool, c *cost) error {
	name := fmt.Sprintf("confinement-%d", round)
	took, err := b.createCluster(ctx, name, shape{newVersion, 1, 2})
	if err != nil {
		return err
	}
	h, err := b.readHost(ctx, name)
	if err != nil {
		return err
	}
	if h.Confinement == nil || h.Confinement.Complete() != confined {
		return fmt.Errorf("cluster %s is confined by %v", name, h.Confinement)
	}
	c.ready, c.memory = append(c.ready, took), append(c.memory, int64(h.machines+h.Memory))
	_, err = b.deleteCluster(ctx, name)
	return err
}
