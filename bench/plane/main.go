// Command plane compares polderd with the same parts as separate processes: etcd,
// kube-apiserver, kube-controller-manager and Cluster API's three managers, built from the same
// modules. It starts both sides one after the other on this machine, measures how long they
// take to be ready and what they hold and use, empty and with stub clusters, and prints one
// table. A missed aim is marked in the table and is no error; something that could not be
// measured is. Nothing it starts or writes stays behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	cfg, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	figs, err := measure(ctx, cfg)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if err := figs.print(os.Stdout, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
