package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/bench/scenario"
)

const (
	clients = 4
	pause   = 20 * time.Millisecond // between requests of a client: a plane that is used, not one that is overrun
)

// measureRequests compares reads and writes while a backup is made with those before and after it, in turns.
func (b *bench) measureRequests(ctx context.Context) (rows scenario.Rows, err error) {
	for i := range clients {
		if err := b.Client.Create(ctx, newObject(i)); err != nil {
			return rows, err
		}
	}
	var before, during latencies
	limit := time.Duration(b.seconds) * time.Second
	for begin := time.Now(); time.Since(begin) < 2*limit; {
		var backup time.Duration
		found, err := b.askWhile(ctx, func() error { backup, err = b.backup(ctx); return err })
		if err != nil {
			return rows, err
		}
		during = append(during, found...)
		if found, err = b.askWhile(ctx, func() error { return scenario.Sleep(ctx, backup) }); err != nil {
			return rows, err
		}
		before = append(before, found...)
	}
	for _, p := range []float64{0.5, 0.99} {
		a, b := before.percentile(p), during.percentile(p)
		rows.AddRow(scenario.Row{
			What: fmt.Sprintf("a request during a backup, p%.0f", p*100), Measured: []string{b.Round(10 * time.Microsecond).String()},
			Aim: (latencyAim * a).Round(10 * time.Microsecond).String(), Ratio: fmt.Sprintf("%.2f", b.Seconds()/(latencyAim*a.Seconds())),
			More: fmt.Sprintf("%s without; %d and %d requests", a.Round(10*time.Microsecond), len(during), len(before)),
		})
	}
	return rows, nil
}

func newObject(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bench-" + strconv.Itoa(i)}}
}

// latencies are how long requests took.
type latencies []time.Duration

func (l latencies) percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(l))
	return s[min(len(s)-1, int(p*float64(len(s))))]
}

// askWhile has all clients read and write in turns while something is done.
func (b *bench) askWhile(ctx context.Context, do func() error) (latencies, error) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var all latencies
	var errs []error
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			found, err := b.ask(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, found...), append(errs, err)
		})
	}
	err := do()
	cancel()
	wg.Wait()
	return all, errors.Join(append(errs, err)...)
}

func (b *bench) ask(ctx context.Context, i int) (latencies, error) {
	var all latencies
	for ctx.Err() == nil {
		o := newObject(i)
		steps := []func() error{
			func() error { return b.Client.Get(ctx, client.ObjectKeyFromObject(o), o) },
			func() error {
				o.Data = map[string]string{"n": strconv.Itoa(len(all))}
				return b.Client.Update(ctx, o)
			},
		}
		for _, step := range steps {
			begin := time.Now()
			if err := step(); err != nil {
				if ctx.Err() != nil {
					return all, nil
				}
				return all, err
			}
			all = append(all, time.Since(begin))
		}
		_ = scenario.Sleep(ctx, pause) // an end is noticed above
	}
	return all, nil
}
