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
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/test/instant"
)

// config is what can be chosen about a run.
type config struct {
	rounds int // pairs of a bare Cluster and a WorkloadCluster
	many   int // WorkloadClusters on the instant provider
	list   int // that polder get shows
	// profile is a file for the CPU profile of polderd while it makes many; empty for none.
	profile string
}

func main() {
	var cfg config
	flag.IntVar(&cfg.rounds, "rounds", 5, "pairs of a bare Cluster and a WorkloadCluster to make; medians count")
	flag.IntVar(&cfg.many, "many", 200, "WorkloadClusters to make at once on the provider in memory")
	flag.IntVar(&cfg.list, "list", 500, "WorkloadClusters to have polder get show")
	flag.StringVar(&cfg.profile, "profile", "", "`file` for a CPU profile of polderd while it begins to make many; it then runs with --profiling")
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
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if c.rounds < 0 || c.many < 1 || c.list < c.many {
		return errors.New("-rounds must be at least 0, -many at least 1, -list at least -many")
	}
	return nil
}

// bench is one run.
type bench struct {
	config
	measure.Table
	*measure.Plane
	instant *instant.Provider
}

func run(ctx context.Context, cfg config) (err error) {
	if err := cfg.validate(); err != nil {
		return err
	}
	b := &bench{config: cfg, instant: instant.New()}
	dir, err := os.MkdirTemp("", "polder-bench-releases-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.instant.WriteReleases(ctx, dir); err != nil {
		return err
	}
	flags := []string{"--stack-directory", "instant=" + dir, "--stack-kinds", "instant.polder.dev/*"}
	if cfg.profile != "" {
		flags = append(flags, "--profiling")
	}
	if b.Plane, err = measure.NewPlane(flags...); err != nil {
		return err
	}
	defer func() { err = errors.Join(b.Close(err), err) }()
	defer func() { err = errors.Join(err, b.Print(os.Stdout)) }() // what there is, if one fails
	if err := b.Start(ctx); err != nil {
		return err
	}
	for _, scene := range []func(context.Context) error{b.catalogue, b.pairs, b.crowd} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}
