// Command operator measures the stack operator: how long a release takes to become ready, what many
// releases cost, how long add-ons of many objects take, and what is written when nothing has changed.
//
//	operator [-rounds N] [-together N] [-releases N] [-objects N]
//
// It starts bin/polderd on an empty directory and a registry on loopback, and leaves nothing behind.
// Wall-clock times depend on the machine and on who else uses it, so the CPU time is printed beside them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

// perStack is how many versions one ClusterStack is given; its spec takes 64.
const perStack = 50

// bench is one run.
type bench struct {
	rounds   int // fresh stacks, one after the other
	stacks   int // fresh stacks at once
	resting  int // stacks that nothing happens to
	together int // releases that are wanted at once
	releases int // that are reconciled again
	objects  int // of the large add-on
	*measure.Plane
	published *published
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "fresh stacks to make one after the other; the median counts")
	flag.IntVar(&b.stacks, "stacks", 20, "fresh stacks to make at once, each in a namespace of its own")
	flag.IntVar(&b.resting, "resting", 150, "stacks to have while nothing happens, each in a namespace of its own")
	flag.IntVar(&b.together, "together", 50, "releases to have one stack ask for at once")
	flag.IntVar(&b.releases, "releases", 200, "unchanged releases to reconcile again")
	flag.IntVar(&b.objects, "objects", 300, "objects of the large add-on; a tenth of them differs in the next release")
	os.Exit(scenario.Main(scenario.Benchmark{Columns: measure.Columns, Validate: b.validate, Run: b.run}))
}

func (b *bench) validate() error {
	if b.together > perStack {
		return fmt.Errorf("-together is at most %d, of one stack", perStack)
	}
	if b.rounds < 1 || b.stacks < 1 || b.resting < 1 || b.together < 1 || b.releases < b.together || b.objects < 10 {
		return errors.New("-rounds, -stacks, -resting and -together must be at least 1, -releases at least -together, -objects at least 10")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) (err error) {
	if b.published, err = newPublished(); err != nil {
		return err
	}
	defer b.published.close()
	return measure.WithPlane(ctx, func(p *measure.Plane) error {
		b.Plane = p
		return r.Run(ctx,
			scenario.Scene{Name: "an empty plane", Run: b.measureEmpty},
			scenario.Scene{Name: "fresh stacks", Run: b.measureFresh},
			scenario.Scene{Name: "stacks at once", Run: b.measureStacks},
			scenario.Scene{Name: "stacks at rest", Run: b.measureResting},
			scenario.Scene{Name: "releases at once", Run: b.measureAtOnce},
			scenario.Scene{Name: "unchanged releases", Run: b.measureUnchanged},
			scenario.Scene{Name: "add-ons", Run: b.measureAddons}, // makes clusters, which would disturb the others
		)
	}, "--no-shipped-stacks", "--stack-trust", b.published.host())
}
