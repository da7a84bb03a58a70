// Command local measures local clusters: how long they take to come up, to grow, to be upgraded
// and to go, and what they cost in memory and CPU while nothing happens.
//
//	local [-rounds N] [-nodes N] [-many N] [-only NAME]
//
// It starts bin/polderd on an empty directory and leaves nothing behind. Wall-clock times depend on
// the machine and on who else uses it, so the CPU time is printed beside them.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

// bench is one run.
type bench struct {
	rounds, nodes, many int
	*measure.Plane
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "clusters to make one after the other")
	flag.IntVar(&b.nodes, "nodes", 100, "simulated nodes to add to one cluster")
	flag.IntVar(&b.many, "many", 20, "clusters to have at the same time; they are made all at once")
	os.Exit(scenario.Main(scenario.Benchmark{
		Columns: []string{"what", "measured", "aim"}, Validate: b.validate, Run: b.run,
	}))
}

func (b *bench) validate() error {
	if b.rounds < 1 || b.nodes < 1 || b.many < 1 {
		return errors.New("-rounds, -nodes and -many must be at least 1")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) error {
	return measure.WithPlane(ctx, func(p *measure.Plane) error {
		b.Plane = p
		if err := b.installClass(ctx); err != nil {
			return err
		}
		return r.Run(ctx,
			scenario.Scene{Name: "small clusters", Run: b.measureSmall},
			scenario.Scene{Name: "a large cluster", Run: b.measureLarge},
			scenario.Scene{Name: "many clusters", Run: b.measureMany},
			scenario.Scene{Name: "with and without confinement", Run: b.measureConfinement},
		)
	})
}
