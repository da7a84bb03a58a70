// Command local measures local clusters: how long they take to come up, to grow, to be upgraded
// and to go, and what they cost in memory and CPU while nothing happens.
//
//	local [-rounds N] [-nodes N]
//
// It starts bin/polderd on an empty directory and leaves nothing behind. Wall-clock times depend on
// the machine and on who else uses it, so the CPU time is printed beside them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	rounds := flag.Int("rounds", 5, "clusters to make one after the other")
	nodes := flag.Int("nodes", 100, "simulated nodes to add to one cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.SetLogger(logr.Discard())
	if err := run(ctx, *rounds, *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, nodes int) (err error) {
	root, err := os.MkdirTemp("", "polder-bench-")
	if err != nil {
		return err
	}
	data := filepath.Join(root, "data")
	polder := func(args ...string) error {
		c := exec.Command("bin/polder", append([]string{"--data-dir", data}, args...)...)
		c.Stderr = os.Stderr
		return c.Run()
	}
	defer func() { err = errors.Join(err, polder("down", "--clusters"), os.RemoveAll(root)) }()
	if err := polder("up", "--listen", "127.0.0.1:0"); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(data, "admin.kubeconfig"))
	if err != nil {
		return err
	}
	cfg.QPS = -1
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	b := &bench{client: c, data: data}
	if err := b.class(ctx); err != nil {
		return err
	}
	return errors.Join(b.small(ctx, rounds), b.large(ctx, nodes), b.print(os.Stdout))
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
