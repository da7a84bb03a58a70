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
		if err := b.client.Create(ctx, s); err != nil {
			return err
		}
		known := time.Now()
		if err := b.stackReady(ctx, ns, 1); err != nil {
			return err
		}
		seen, ready = append(seen, known.Sub(begin)), append(ready, time.Since(known))
		begin = time.Now()
		if err := b.client.Delete(ctx, s); err != nil {
			return err
		}
		if err := b.classGone(ctx, client.ObjectKey{Namespace: ns, Name: class}); err != nil {
			return err
		}
		gone = append(gone, time.Since(begin))
	}
	b.add(fmt.Sprintf("create of a ClusterStack acknowledged, median of %d", b.rounds), seconds(median(seen)), spread(seen))
	b.within("  from there to ready", median(ready), readyAim, spread(ready))
	b.add("  delete until its class is gone", seconds(median(gone)), spread(gone))
	return nil
}

// stackReady waits until the stack of a namespace and so many releases of it are ready.
func (b *bench) stackReady(ctx context.Context, ns string, releases int) error {
	return await(ctx, b.client, &csv1.ClusterStackList{}, ns, func(s *csv1.ClusterStack) bool {
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
		err := b.client.Get(ctx, key, &clusterv1.ClusterClass{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = sleep(ctx, 10*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("waiting for class %s to go: %w", key, err)
		}
	}
}

// atOnce has one stack ask for many releases.
func (b *bench) atOnce(ctx context.Context) error {
	if err := b.forgetPeak(); err != nil {
		return err
	}
	rss, _, err := b.memory()
	if err != nil {
		return err
	}
	s, err := b.prepare(ctx, 1, b.together)
	if err != nil {
		return err
	}
	before, err := b.now(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := b.client.Create(ctx, s); err != nil {
		return err
	}
	if err := b.stackReady(ctx, s.Namespace, b.together); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.now(ctx)
	if err != nil {
		return err
	}
	_, peak, err := b.memory()
	used, asked := after.cpu.minus(before.cpu), after.requests.minus(before.requests)
	b.add(fmt.Sprintf("%d releases at once, all ready", b.together), seconds(took), each(took, b.together))
	b.add("  CPU of polderd", seconds(used.sum()), used.rendering()+", "+each(used.sum(), b.together))
	b.add("  requests of the whole plane", strconv.Itoa(asked.total()), fmt.Sprintf("%d each, %s", asked.total()/b.together, asked.verbs()))
	b.add("  largest resident set of polderd", fmt.Sprintf("%d MiB", peak), fmt.Sprintf("%d MiB before", rss))
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
