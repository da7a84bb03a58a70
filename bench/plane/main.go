// Command plane compares polderd with the same parts as separate processes: etcd,
// kube-apiserver, kube-controller-manager and Cluster API's three managers, built from the same
// modules. It starts both sides one after the other on this machine, measures how long they
// take to be ready and what they hold and use, empty and with stub clusters, and prints one
// table. A missed aim is marked in the table and is no error; something that could not be
// measured is. Nothing it starts or writes stays behind.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
)

// bench is one run, with the columns of the table.
type bench struct {
	config
	separate  result
	fresh     result // polderd on an empty directory
	restarted result // polderd on its own data
	cliSize   int64
	cliTime   time.Duration
}

func main() {
	var b bench
	b.addFlags()
	os.Exit(scenario.Main(scenario.Benchmark{
		Columns:  []string{"measure", "separate processes", "polderd fresh", "polderd restarted", "ratio", "aim"},
		Validate: b.validate, Run: b.run,
	}))
}

// run measures one side after the other. Rows compare them, so they are made at the end, of what there is.
func (b *bench) run(ctx context.Context, r *scenario.Runner) error {
	if err := warm(append(separatePrograms(b.config), b.program("polder"), b.program("polderd"))...); err != nil {
		return fmt.Errorf("%w; run bench/plane/run, which builds everything", err)
	}
	if err := b.measurePrograms(); err != nil {
		return err
	}
	err := r.Run(ctx,
		scenario.Scene{Name: "polder version", Run: b.measureVersion},
		newScene("separate processes", &b.separate, b.measureSeparate),
		newScene("separate processes, further starts", &b.separate, b.startSeparate),
		newScene("polderd", &b.fresh, b.measurePolderd),
		newScene("polderd, restarted without clusters", &b.fresh, b.measureRestart),
		newScene("polderd, further starts", &b.fresh, b.startPolderd),
	)
	b.restarted.host = b.fresh.host // their scenes are mixed
	r.Keep(b.rows())
	return err
}
