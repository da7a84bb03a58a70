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
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/polder-kaas/polder/bench/measure"
)

// perStack is how many versions one ClusterStack is given; its spec takes 64.
const perStack = 50

// config is what can be chosen about a run.
type config struct {
	rounds   int // fresh stacks, one after the other
	together int // releases that are wanted at once
	releases int // that are reconciled again
	objects  int // of the large add-on
}

func main() {
	var cfg config
	flag.IntVar(&cfg.rounds, "rounds", 5, "fresh stacks to make one after the other; the median counts")
	flag.IntVar(&cfg.together, "together", 50, "releases to have one stack ask for at once")
	flag.IntVar(&cfg.releases, "releases", 200, "unchanged releases to reconcile again")
	flag.IntVar(&cfg.objects, "objects", 300, "objects of the large add-on; a tenth of them differs in the next release")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.SetLogger(logr.Discard())
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (c config) validate() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	case c.together > perStack:
		return fmt.Errorf("-together is at most %d, of one stack", perStack)
	case c.rounds < 1 || c.together < 1 || c.releases < c.together || c.objects < 10:
		return errors.New("-rounds and -together must be at least 1, -releases at least -together, -objects at least 10")
	}
	return nil
}

// bench is one run.
type bench struct {
	config
	measure.Table
	*measure.Plane
	published *published
}

func run(ctx context.Context, cfg config) (err error) {
	if err := cfg.validate(); err != nil {
		return err
	}
	releases, err := newPublished()
	if err != nil {
		return err
	}
	defer releases.close()
	p, err := measure.NewPlane("--no-shipped-stacks", "--stack-trust", releases.host())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(p.Close(err), err) }()
	b := &bench{config: cfg, Plane: p, published: releases}
	defer func() { err = errors.Join(err, b.Print(os.Stdout)) }() // what there is, if one fails
	// The last one makes clusters, which would disturb the others.
	for _, scene := range []func(context.Context) error{b.empty, b.fresh, b.atOnce, b.unchanged, b.addons} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}
