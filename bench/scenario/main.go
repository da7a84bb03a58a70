// Package scenario is what all programs of bench/ are made of: a command line, scenes that run one after the other, and
// one table of what they have measured. It imports nothing of Kubernetes: bench/stack measures how long a child of its
// own program takes to start, and whatever is linked into it counts.
package scenario

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Benchmark is one program of bench/. Its flags are registered with package flag before Main.
type Benchmark struct {
	Columns  []string     // of the table
	Validate func() error // of flags; optional
	// Run makes what all scenes need, has them run, and cleans up, also after an interrupt.
	Run func(context.Context, *Runner) error
}

// Main runs a benchmark until it ends or is interrupted, and returns the exit code of the program: 1 if something could
// not be measured, 2 for wrong flags.
func Main(b Benchmark) int {
	only := flag.String("only", "", "run only scenes that have this in their name")
	flag.Parse()
	if err := b.validate(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := b.run(ctx, os.Stdout, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func (b Benchmark) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown argument %q", args[0])
	}
	if b.Validate == nil {
		return nil
	}
	return b.Validate()
}

// run prints the table whatever went wrong: a figure that was measured took minutes, and is as good as before.
func (b Benchmark) run(ctx context.Context, out io.Writer, only string) error {
	r := Runner{only: only}
	err := b.Run(ctx, &r)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return errors.Join(err, r.rows.print(out, b.Columns))
}
