// Command stack measures the library of stacks: how long lint, build and render take, with the
// child process that renders, what Helm's own package takes for the same chart, and how much memory
// the programs use while they pull a large release.
//
//	stack [-rounds N]
//
// It needs bin/polder, and a registry of its own on loopback, which it starts.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
)

const program = "bin/polder"

func main() {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	rounds := flag.Int("rounds", 9, "how often each is measured; the median counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int) error {
	shipped, err := archive.ReadDir("stacks/local/scs", archive.DefaultLimits, nil)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "WHAT\tSHIPPED STACK\tSTACK OF 50 CHARTS\tAIM")
	for _, row := range []struct {
		name, aim string
		work      func(context.Context, archive.Tree) error
	}{
		{"lint, one minor", "", lintOnce},
		{"build", "< 1 s", buildOnce},
		{"render class and add-ons, two children", "", renderOnce},
		{"render add-ons, with the child", "< 0.2 s", renderAddonsOnce},
	} {
		a, err := median(ctx, rounds, shipped, row.work)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		b, err := median(ctx, rounds, synthetic(shipped, 50), row.work)
		if err != nil {
			return fmt.Errorf("%s of 50 charts: %w", row.name, err)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.name, ms(a), ms(b), row.aim)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := besideHelm(ctx, rounds); err != nil {
		return err
	}
	return pulls(ctx, shipped)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }

func median(ctx context.Context, rounds int, files archive.Tree, work func(context.Context, archive.Tree) error) (time.Duration, error) {
	var all []time.Duration
	for range rounds {
		start := time.Now()
		if err := work(ctx, files); err != nil {
			return 0, err
		}
		all = append(all, time.Since(start))
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	return all[len(all)/2], nil
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
	return addons(ctx, r, stack.ClusterData{Cluster: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "b"}}})
}

func addons(ctx context.Context, r *stack.Release, data stack.ClusterData) error {
	_, found, err := r.RenderAddons(ctx, new(render.Renderer), stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
	if err != nil {
		return err
	}
	return found.Err()
}
