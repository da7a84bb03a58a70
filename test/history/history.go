// Package history writes to a plane while faults are injected, records what was acknowledged,
// and checks afterwards that nothing of it is lost.
//
// Each writer owns one object and counts it up, so the history of an object is a sequence of
// numbers: after any crash the stored number must be at least the last one acknowledged, and
// at most the last one sent. That is what linearizability means for a single writer.
package history

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Writers is a number of writers at work.
type Writers struct {
	namespace string
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	all       []*writer
	acked     atomic.Int64
}

type writer struct {
	name string

	mu    sync.Mutex
	sent  int
	acked int
}

// Start sets n writers to work in a namespace, until Stop.
func Start(ctx context.Context, cfg *rest.Config, namespace, prefix string, n int) (*Writers, error) {
	ctx, cancel := context.WithCancel(ctx)
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 5 * time.Second
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	ws := &Writers{namespace: namespace, cancel: cancel}
	for i := range n {
		w := &writer{name: fmt.Sprintf("%s-%d", prefix, i)}
		ws.all = append(ws.all, w)
		ws.wg.Go(func() {
			for ctx.Err() == nil {
				if w.write(ctx, c, namespace) {
					ws.acked.Add(1)
				}
			}
		})
	}
	return ws, nil
}

// Acknowledged is the number of writes the plane has acknowledged so far.
func (ws *Writers) Acknowledged() int64 { return ws.acked.Load() }

// Checkpoint is what was acknowledged by a moment.
type Checkpoint struct {
	writers *Writers
	acked   []int
}

// Checkpoint records what was acknowledged so far, while writers go on.
func (ws *Writers) Checkpoint() Checkpoint {
	c := Checkpoint{writers: ws}
	for _, w := range ws.all {
		w.mu.Lock()
		c.acked = append(c.acked, w.acked)
		w.mu.Unlock()
	}
	return c
}

// Verify reads what is stored now, which may be a state between the checkpoint and Stop, and reports every write that
// was acknowledged before the checkpoint and is not there. It must be called after Stop.
func (c Checkpoint) Verify(ctx context.Context, cfg *rest.Config) error {
	return c.writers.verify(ctx, cfg, c.acked)
}

// Stop ends all writers and waits for them.
func (ws *Writers) Stop() {
	ws.cancel()
	ws.wg.Wait()
}

// write counts the writer's object up by one and says whether that was acknowledged.
func (w *writer) write(ctx context.Context, c kubernetes.Interface, ns string) bool {
	w.mu.Lock()
	w.sent++
	n := w.sent
	w.mu.Unlock()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.name}, Data: map[string]string{"n": strconv.Itoa(n)}}
	_, err := c.CoreV1().ConfigMaps(ns).Update(ctx, o, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.CoreV1().ConfigMaps(ns).Create(ctx, o, metav1.CreateOptions{})
	}
	if err != nil {
		return false // unknown: it may have been stored or not
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = n
	return true
}

// Verify reads what is stored now and reports every acknowledged write that is not. It must be
// called after Stop.
func (ws *Writers) Verify(ctx context.Context, cfg *rest.Config) error {
	return ws.verify(ctx, cfg, ws.Checkpoint().acked)
}

func (ws *Writers) verify(ctx context.Context, cfg *rest.Config, acked []int) error {
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	for i, w := range ws.all {
		acked := acked[i]
		o, err := c.CoreV1().ConfigMaps(ws.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && acked == 0 {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: acknowledged %d, now: %w", w.name, acked, err)
		}
		n, err := strconv.Atoi(o.Data["n"])
		if err != nil {
			return fmt.Errorf("%s holds %q: %w", w.name, o.Data["n"], err)
		}
		if n < acked || n > w.sent {
			return fmt.Errorf("%s holds %d, but %d was acknowledged and %d was the last one sent", w.name, n, acked, w.sent)
		}
	}
	return nil
}
