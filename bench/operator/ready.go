package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

const readyAim = time.Second

// measureFresh makes stacks one after the other, each in a namespace of its own and with a release that nobody
// has seen before, and deletes them again.
func (b *bench) measureFresh(ctx context.Context) (rows scenario.Rows, err error) {
	var seen, ready, deleted []time.Duration
	for i := 1; i <= b.rounds; i++ {
		ns := fmt.Sprintf("fresh-%d", i)
		class, _, err := b.published.publish(ctx, ns, i, b.published.shipped)
		if err != nil {
			return rows, err
		}
		if err := b.namespace(ctx, ns); err != nil {
			return rows, err
		}
		s := b.published.stack(ns, i, i)
		begin := time.Now()
		if err := b.Client.Create(ctx, s); err != nil {
			return rows, err
		}
		known := time.Now()
		if err := b.stackReady(ctx, ns, 1); err != nil {
			return rows, err
		}
		seen, ready = append(seen, known.Sub(begin)), append(ready, time.Since(known))
		begin = time.Now()
		if err := b.Client.Delete(ctx, s); err != nil {
			return rows, err
		}
		gone := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: class}}
		if err := b.AwaitGone(ctx, gone, 10*time.Millisecond); err != nil {
			return rows, err
		}
		deleted = append(deleted, time.Since(begin))
	}
	rows.Add(fmt.Sprintf("create of a ClusterStack acknowledged, median of %d", b.rounds),
		scenario.FormatSeconds(scenario.Median(seen)), scenario.FormatRange(seen))
	rows.AddDuration("  from there to ready", scenario.Median(ready), readyAim, scenario.FormatRange(ready))
	rows.Add("  delete until its class is gone", scenario.FormatSeconds(scenario.Median(deleted)),
		scenario.FormatRange(deleted))
	return rows, nil
}

// measureStacks makes stacks at once, each in a namespace of its own and with a release that nobody has seen before.
func (b *bench) measureStacks(ctx context.Context) (rows scenario.Rows, err error) {
	all, err := b.prepareStacks(ctx, "at-once", b.stacks)
	if err != nil {
		return rows, err
	}
	e, err := b.Measure(ctx, func() error { return b.createStacks(ctx, all) })
	if err != nil {
		return rows, err
	}
	rows.Add(fmt.Sprintf("%d ClusterStacks at once, all ready", b.stacks), scenario.FormatSeconds(e.Clock),
		scenario.FormatPerItem(e.Clock, b.stacks))
	rows.Add("  CPU of polderd", scenario.FormatSeconds(e.CPU.Sum()),
		measure.FormatChildren(e.CPU)+", "+scenario.FormatPerItem(e.CPU.Sum(), b.stacks))
	rows.Add("  requests of the whole plane", strconv.Itoa(e.Requests.Total()),
		fmt.Sprintf("%d each, %s", e.Requests.Total()/b.stacks, e.Requests.Verbs()))
	return rows, b.deleteStacks(ctx, all)
}

// measureResting makes stacks and measures what the plane takes while nothing happens, beside what it takes without
// them.
func (b *bench) measureResting(ctx context.Context) (rows scenario.Rows, err error) {
	without, err := b.measureRest(ctx)
	if err != nil {
		return rows, err
	}
	all, err := b.prepareStacks(ctx, "resting", b.resting)
	if err != nil {
		return rows, err
	}
	if err := b.createStacks(ctx, all); err != nil {
		return rows, err
	}
	with, err := b.measureRest(ctx)
	if err != nil {
		return rows, err
	}
	rows.AddRow(scenario.Row{
		What: fmt.Sprintf("CPU at rest with %d stacks", b.resting), Measured: []string{fmt.Sprintf("%.1f %%", with)}, Aim: "2.0 %",
		Ratio: fmt.Sprintf("%.2f", with/2), More: fmt.Sprintf("of a core; %.1f %% without them", without),
	})
	return rows, b.deleteStacks(ctx, all)
}

// restWindow is how long a plane at rest is looked at; longer than most of what it does now and then.
const restWindow = 2 * time.Minute

// measureRest returns how many percent of a core the plane takes once it is at rest.
func (b *bench) measureRest(ctx context.Context) (percent float64, err error) {
	if err := b.AwaitIdle(ctx); err != nil {
		return 0, err
	}
	e, err := b.Measure(ctx, func() error { return scenario.Sleep(ctx, restWindow) })
	return 100 * e.CPU.Sum().Seconds() / e.Clock.Seconds(), err
}

// prepareStacks publishes a release and makes a namespace for each of so many stacks.
func (b *bench) prepareStacks(ctx context.Context, prefix string, n int) (all []*csv1.ClusterStack, err error) {
	for i := 1; i <= n; i++ {
		ns := fmt.Sprintf("%s-%d", prefix, i)
		if _, _, err := b.published.publish(ctx, ns, i, b.published.shipped); err != nil {
			return nil, err
		}
		if err := b.namespace(ctx, ns); err != nil {
			return nil, err
		}
		all = append(all, b.published.stack(ns, i, i))
	}
	return all, nil
}

// createStacks makes stacks and waits until they are ready.
func (b *bench) createStacks(ctx context.Context, all []*csv1.ClusterStack) error {
	for _, s := range all {
		if err := b.Client.Create(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range all {
		if err := b.stackReady(ctx, s.Namespace, 1); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) deleteStacks(ctx context.Context, all []*csv1.ClusterStack) error {
	for _, s := range all {
		if err := b.Client.Delete(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// stackReady waits until the stack of a namespace and so many releases of it are ready.
func (b *bench) stackReady(ctx context.Context, ns string, releases int) error {
	return measure.Await(ctx, b.Client, &csv1.ClusterStackList{}, ns, func(s *csv1.ClusterStack) bool {
		n := 0
		for _, r := range s.Status.Summary {
			if ptr.Deref(r.Ready, false) {
				n++
			}
		}
		return isReady(s.Status.Conditions) && n == releases
	})
}

// measureAtOnce makes one stack that asks for many releases.
func (b *bench) measureAtOnce(ctx context.Context) (rows scenario.Rows, err error) {
	if err := b.ResetPeakMemory(); err != nil {
		return rows, err
	}
	rss, _, err := b.Memory()
	if err != nil {
		return rows, err
	}
	s, err := b.prepare(ctx, 1, b.together)
	if err != nil {
		return rows, err
	}
	e, err := b.Measure(ctx, func() error {
		if err := b.Client.Create(ctx, s); err != nil {
			return err
		}
		return b.stackReady(ctx, s.Namespace, b.together)
	})
	if err != nil {
		return rows, err
	}
	_, peak, err := b.Memory()
	used, asked := e.CPU, e.Requests
	rows.Add(fmt.Sprintf("%d releases at once, all ready", b.together), scenario.FormatSeconds(e.Clock),
		scenario.FormatPerItem(e.Clock, b.together))
	rows.Add("  CPU of polderd", scenario.FormatSeconds(used.Sum()),
		measure.FormatChildren(used)+", "+scenario.FormatPerItem(used.Sum(), b.together))
	rows.Add("  requests of the whole plane", strconv.Itoa(asked.Total()),
		fmt.Sprintf("%d each, %s", asked.Total()/b.together, asked.Verbs()))
	rows.Add("  largest resident set of polderd", fmt.Sprintf("%d MiB", peak), fmt.Sprintf("%d MiB before", rss))
	return rows, err
}

// prepare publishes releases for a stack of the versions first to last, in a namespace of its own.
func (b *bench) prepare(ctx context.Context, first, last int) (*csv1.ClusterStack, error) {
	ns := fmt.Sprintf("many-%d", first)
	for n := first; n <= last; n++ {
		if _, _, err := b.published.publish(ctx, ns, n, b.published.shipped); err != nil {
			return nil, err
		}
	}
	return b.published.stack(ns, first, last), b.namespace(ctx, ns)
}
