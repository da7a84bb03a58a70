// Package watch follows the hosts of local clusters and tells controllers what changed.
package watch

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
)

// retry is the pause after a host did not answer.
const retry = 500 * time.Millisecond

// Watcher follows hosts. It is a Runnable of a controller manager: before it is started, and
// after it ended, nothing is followed.
type Watcher struct {
	// Clusters and Machines get an event for each object about which there is news.
	Clusters chan event.TypedGenericEvent[*infrav1.LocalCluster]
	Machines chan event.TypedGenericEvent[*infrav1.LocalMachine]

	mu      sync.Mutex
	ctx     context.Context
	follows map[string]context.CancelFunc // by the UID of the LocalCluster
	wg      sync.WaitGroup
}

// New prepares a watcher.
func New() *Watcher {
	return &Watcher{
		Clusters: make(chan event.TypedGenericEvent[*infrav1.LocalCluster]),
		Machines: make(chan event.TypedGenericEvent[*infrav1.LocalMachine]),
		follows:  map[string]context.CancelFunc{},
	}
}

// Start keeps following until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil
	for _, cancel := range w.follows {
		cancel()
	}
	w.mu.Unlock()
	w.wg.Wait()
	return nil
}

// Follow begins to follow the host of a cluster, unless it does already.
func (w *Watcher) Follow(c *infrav1.LocalCluster, dir hostapi.Dir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := string(c.UID)
	if w.ctx == nil || w.follows[uid] != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.follows[uid] = cancel
	key := metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	w.wg.Go(func() { w.follow(ctx, key, hostapi.NewClient(dir)) })
}

// Forget ends following a host.
func (w *Watcher) Forget(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.follows[uid]; cancel != nil {
		cancel()
		delete(w.follows, uid)
	}
}

func (w *Watcher) follow(ctx context.Context, key metav1.ObjectMeta, client *hostapi.Client) {
	var last hostapi.Status
	answered := true
	for ctx.Err() == nil {
		s, err := client.Watch(ctx, last.Revision)
		if err != nil {
			if answered {
				w.tell(ctx, key, last, hostapi.Status{Problem: err.Error()})
			}
			answered, last = false, hostapi.Status{}
			pause(ctx, retry)
			continue
		}
		w.tell(ctx, key, last, s)
		answered, last = true, s
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// tell sends events for what differs.
func (w *Watcher) tell(ctx context.Context, key metav1.ObjectMeta, old, now hostapi.Status) {
	if old.PID != now.PID || old.Problem != now.Problem {
		select {
		case w.Clusters <- event.TypedGenericEvent[*infrav1.LocalCluster]{Object: &infrav1.LocalCluster{ObjectMeta: key}}:
		case <-ctx.Done():
		}
	}
	before := map[string]hostapi.MachineStatus{}
	for _, m := range old.Machines {
		before[m.Name] = withoutFigures(m)
	}
	for _, m := range now.Machines {
		if b, ok := before[m.Name]; ok && reflect.DeepEqual(b, withoutFigures(m)) {
			continue
		}
		o := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: m.Name}}
		select {
		case w.Machines <- event.TypedGenericEvent[*infrav1.LocalMachine]{Object: o}:
		case <-ctx.Done():
		}
	}
}

// withoutFigures drops what changes all the time.
func withoutFigures(m hostapi.MachineStatus) hostapi.MachineStatus {
	m.Processes = append([]hostapi.Process{}, m.Processes...)
	for i := range m.Processes {
		m.Processes[i].Memory = 0
	}
	return m
}
