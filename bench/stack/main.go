// Command stack measures the library of stacks: how long lint, build and render take, with the
// child process that renders, what Helm's own package takes for the same chart, and how much memory
// the programs use while they pull a large release.
//
//	stack [-rounds N]
//
// It needs bin/polder, and a registry of its own on loopback, which it starts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
)

const program = "bin/polder"

// bench is one run.
type bench struct {
	rounds             int
	shipped, synthetic archive.Tree
}

func main() {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	var b bench
	flag.IntVar(&b.rounds, "rounds", 9, "how often each is measured; the median counts")
	os.Exit(scenario.Main(scenario.Benchmark{
		Columns: []string{"WHAT", "SHIPPED STACK", "STACK OF 50 CHARTS", "AIM"}, Validate: b.validate, Run: b.run,
	}))
}

func (b *bench) validate() error {
	if b.rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) (err error) {
	if b.shipped, err = archive.ReadDir("stacks/local/scs", archive.DefaultLimits, nil); err != nil {
		return err
	}
	b.synthetic = synthetic(b.shipped, 50)
	return r.Run(ctx,
		b.newScene("lint, one minor", "", lintOnce),
		b.newScene("build", "< 1 s", buildOnce),
		b.newScene("render class and add-ons, two children", "", renderOnce),
		b.newScene("render add-ons, with the child", "< 0.2 s", renderAddonsOnce),
		scenario.Scene{Name: "beside Helm", Run: b.measureHelm},
		scenario.Scene{Name: "start of a child", Run: b.measureChild},
		scenario.Scene{Name: "pull", Run: b.measurePulls},
	)
}

// newScene does the same with both stacks.
func (b *bench) newScene(what, aim string, work func(context.Context, archive.Tree) error) scenario.Scene {
	return scenario.Scene{Name: what, Run: func(ctx context.Context) (rows scenario.Rows, err error) {
		shipped, err := median(ctx, b.rounds, b.shipped, work)
		if err != nil {
			return rows, err
		}
		large, err := median(ctx, b.rounds, b.synthetic, work)
		if err != nil {
			return rows, fmt.Errorf("of 50 charts: %w", err)
		}
		rows.AddRow(scenario.Row{What: what, Measured: []string{ms(shipped), ms(large)}, Aim: aim})
		return rows, nil
	}}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }

func median(ctx context.Context, rounds int, files archive.Tree,
	work func(context.Context, archive.Tree) error) (time.Duration, error) {
	all, err := scenario.Repeat(rounds, func() error { return work(ctx, files) })
	if err != nil {
		return 0, err
	}
	return scenario.Median(all), nil
}

// source is the stack for its newest Kubernetes alone.
func source(files archive.Tree) (*stack.Source, error) {
	one := archive.Tree{}
	for name, b := range files {
		one[name] = b
	}
	one["stack.yaml"] = []byte("provider: local\nclusterStackName: scs\nkubernetesVersion: v1.37.1\n")
	return stack.ParseSource(one)
}

func lintOnce(ctx context.Context, files archive.Tree) error {
	s, err := source(files)
	if err != nil {
		return err
	}
	found, err := lint.Run(ctx, s.Files, lint.Options{})
	if err != nil {
		return err
	}
	return found.Err()
}

func built(files archive.Tree) (*stack.Release, error) {
	s, err := source(files)
	if err != nil {
		return nil, err
	}
	v, err := s.Plan(stack.ModeHash, stack.History{})
	if err != nil {
		return nil, err
	}
	return s.Build(v, nil)
}

func buildOnce(_ context.Context, files archive.Tree) error {
	_, err := built(files)
	return err
}

func renderOnce(ctx context.Context, files archive.Tree) error {
	r, err := built(files)
	if err != nil {
		return err
	}
	class, found, err := r.RenderClass(ctx, new(render.Renderer), "default")
	if err != nil {
		return err
	}
	if err := found.Err(); err != nil {
		return err
	}
	data, err := r.SampleClusterData(class)
	if err != nil {
		return err
	}
	return addons(ctx, r, data)
}

func renderAddonsOnce(ctx context.Context, files archive.Tree) error {
	r, err := built(files)
	if err != nil {
		return err
	}
	return addons(ctx, r, stack.ClusterData{
		Cluster: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "b"}},
	})
}

func addons(ctx context.Context, r *stack.Release, data stack.ClusterData) error {
	_, found, err := r.RenderAddons(ctx, new(render.Renderer), stack.AddonInput{
		Cluster: data, Record: render.FixedRecord(),
	})
	if err != nil {
		return err
	}
	return found.Err()
}
