// Command workloadcluster measures what a WorkloadCluster costs: beside a bare Cluster of the same shape, two hundred
// of them on a provider in memory, and the list of five hundred.
//
//	workloadcluster [-rounds N] [-many N] [-list N] [-profile FILE]
//
// It starts bin/polderd on an empty directory and leaves nothing behind. Wall-clock times depend on the machine and on
// who else uses it, so what is compared is measured in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/test/instant"
)

// bench is one run.
type bench struct {
	rounds int // pairs of a bare Cluster and a WorkloadCluster
	many   int // WorkloadClusters on the instant provider
	list   int // that polder get shows
	// profile is a file for the CPU profile of polderd while it makes many; empty for none.
	profile string
	*measure.Plane
	instant        *instant.Provider
	class, version string // of the release that pairs are made of
}

func main() {
	b := bench{instant: instant.New()}
	flag.IntVar(&b.rounds, "rounds", 5, "pairs of a bare Cluster and a WorkloadCluster to make; medians count")
	flag.IntVar(&b.many, "many", 200, "WorkloadClusters to make at once on the provider in memory")
	flag.IntVar(&b.list, "list", 500, "WorkloadClusters to have polder get show")
	flag.StringVar(&b.profile, "profile", "",
		"`file` for a CPU profile of polderd while it begins to make many; it then runs with --profiling")
	os.Exit(scenario.Main(scenario.Benchmark{Columns: measure.Columns, Validate: b.validate, Run: b.run}))
}

func (b *bench) validate() error {
	if b.rounds < 0 || b.many < 1 || b.list < b.many {
		return errors.New("-rounds must be at least 0, -many at least 1, -list at least -many")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) (err error) {
	dir, err := os.MkdirTemp("", "polder-bench-releases-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.instant.WriteReleases(ctx, dir); err != nil {
		return err
	}
	flags := []string{"--stack-directory", "instant=" + dir, "--stack-kinds", "instant.polder.dev/*"}
	if b.profile != "" {
		flags = append(flags, "--profiling")
	}
	scenes := []scenario.Scene{
		{Name: "pairs of clusters", Run: b.measurePairs}, {Name: "many clusters", Run: b.measureMany},
	}
	if b.rounds == 0 {
		scenes = scenes[1:]
	}
	return measure.WithPlane(ctx, func(p *measure.Plane) error {
		b.Plane = p
		if err := b.awaitCatalogue(ctx); err != nil {
			return err
		}
		return r.Run(ctx, scenes...)
	}, flags...)
}
