package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"

	"github.com/polder-kaas/polder/bench/measure"
)

const readyAim = time.Second

// fresh makes stacks one after the other, each in a namespace of its own and with a release that nobody
// has seen before, and deletes them again.
func (b *bench) fresh(ctx context.Context) error {
	var seen, ready, gone []time.Duration
	for i := 1; i <= b.rounds; i++ {
		ns := fmt.Sprintf("fresh-%d", i)
		class, _, err := b.published.publish(ctx, ns, i, b.published.shipped)
		if err != nil {
			return err
		}
		if err := b.namespace(ctx, ns); err != nil {
			return err
		}
		s := b.published.stack(ns, i, i)
		begin := time.Now()
		if err := b.Client.Create(ctx, s); err != nil {
			return err
		}
		known := time.Now()
		if err := b.stackReady(ctx, ns, 1); err != nil {
			return err
		}
		seen, ready = append(seen, known.Sub(begin)), append(ready, time.Since(known))
		begin = time.Now()
		if err := b.Client.Delete(ctx, s); err != nil {
			return err
		}
		if err := b.classGone(ctx, client.ObjectKey{Namespace: ns, Name: class}); err != nil {
			return err
		}
		gone = append(gone, time.Since(begin))
	}
	b.Add(fmt.Sprintf("create of a ClusterStack acknowledged, median of %d", b.rounds), measure.FormatSeconds(measure.Median(seen)), measure.FormatRange(seen))
	b.AddDuration("  from there to ready", measure.Median(ready), readyAim, measure.FormatRange(ready))
	b.Add("  delete until its class is gone", measure.FormatSeconds(measure.Median(gone)), measure.FormatRange(gone))
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

func (b *bench) classGone(ctx context.Context, key client.ObjectKey) error {
	for {
		err := b.Client.Get(ctx, key, &clusterv1.ClusterClass{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = measure.Sleep(ctx, 10*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("waiting for class %s to go: %w", key, err)
		}
	}
}

// atOnce makes one stack that asks for many releases.
func (b *bench) atOnce(ctx context.Context) error {
	if err := b.ResetPeakMemory(); err != nil {
		return err
	}
	rss, _, err := b.Memory()
	if err != nil {
		return err
	}
	s, err := b.prepare(ctx, 1, b.together)
	if err != nil {
		return err
	}
	before, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := b.Client.Create(ctx, s); err != nil {
		return err
	}
	if err := b.stackReady(ctx, s.Namespace, b.together); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, peak, err := b.Memory()
	used, asked := after.CPU.Minus(before.CPU), after.Requests.Minus(before.Requests)
	b.Add(fmt.Sprintf("%d releases at once, all ready", b.together), measure.FormatSeconds(took), measure.FormatPerItem(took, b.together))
	b.Add("  CPU of polderd", measure.FormatSeconds(used.Sum()), used.FormatChildren()+", "+measure.FormatPerItem(used.Sum(), b.together))
	b.Add("  requests of the whole plane", strconv.Itoa(asked.Total()), fmt.Sprintf("%d each, %s", asked.Total()/b.together, asked.Verbs()))
	b.Add("  largest resident set of polderd", fmt.Sprintf("%d MiB", peak), fmt.Sprintf("%d MiB before", rss))
	return err
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
