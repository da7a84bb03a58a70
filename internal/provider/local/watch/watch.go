// Package watch follows the hosts of local clusters and tells controllers what changed.
package watch

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
)

// retry is the pause after a host did not answer.
const retry = 500 * time.Millisecond

// Watcher follows hosts. It is a Runnable of a controller manager, which starts it together with
// the controllers that ask it to follow: what is asked for before it is started begins then.
type Watcher struct {
	// Clusters and Machines get an event for each object about which there is news.
	Clusters chan event.TypedGenericEvent[*infrav1.LocalCluster]
	Machines chan event.TypedGenericEvent[*infrav1.LocalMachine]

	mu      sync.Mutex
	ctx     context.Context    // nil: not yet started, or ended
	follows map[string]*follow // by the UID of the LocalCluster
	wg      sync.WaitGroup
}

// follow is one host and how to end following it.
type follow struct {
	key    metav1.ObjectMeta
	host   *hostapi.Client
	cancel context.CancelFunc // nil: not yet begun
}

// New prepares a watcher.
func New() *Watcher {
	return &Watcher{
		Clusters: make(chan event.TypedGenericEvent[*infrav1.LocalCluster]),
		Machines: make(chan event.TypedGenericEvent[*infrav1.LocalMachine]),
		follows:  map[string]*follow{},
	}
}

// Start keeps following until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, f := range w.follows {
		w.begin(f)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil // nothing is begun any more
	w.mu.Unlock()
	w.wg.Wait()
	return nil
}

// Follow begins to follow the host of a cluster, unless it does already.
func (w *Watcher) Follow(c *infrav1.LocalCluster, dir hostapi.Dir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := string(c.UID)
	if w.follows[uid] != nil {
		return
	}
	f := &follow{key: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID}, host: hostapi.NewClient(dir)}
	w.follows[uid] = f
	w.begin(f)
}

// begin is called with the lock held.
func (w *Watcher) begin(f *follow) {
	if w.ctx == nil {
		return
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(w.ctx)
	w.wg.Go(func() { w.follow(ctx, f.key, f.host) })
}

// Forget ends following a host.
func (w *Watcher) Forget(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.follows[uid]; f != nil && f.cancel != nil {
		f.cancel()
	}
	delete(w.follows, uid)
}

func (w *Watcher) follow(ctx context.Context, key metav1.ObjectMeta, host *hostapi.Client) {
	var last hostapi.Status
	answered := true
	for ctx.Err() == nil {
		s, err := host.Watch(ctx, last.Revision)
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
		send(ctx, w.Clusters, &infrav1.LocalCluster{ObjectMeta: key})
	}
	for _, name := range changed(old.Machines, now.Machines) {
		send(ctx, w.Machines, &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}})
	}
}

func send[T any](ctx context.Context, to chan<- event.TypedGenericEvent[T], object T) {
	select {
	case to <- event.TypedGenericEvent[T]{Object: object}:
	case <-ctx.Done():
	}
}

// changed names the machines that are new, different or gone.
func changed(old, now []hostapi.MachineStatus) (names []string) {
	before := map[string]hostapi.MachineStatus{}
	for _, m := range old {
		before[m.Name] = withoutFigures(m)
	}
	for _, m := range now {
		if b, ok := before[m.Name]; !ok || !reflect.DeepEqual(b, withoutFigures(m)) {
			names = append(names, m.Name)
		}
		delete(before, m.Name)
	}
	return append(names, slices.Sorted(maps.Keys(before))...)
}

// withoutFigures drops what changes all the time, and how the same moment is written.
func withoutFigures(m hostapi.MachineStatus) hostapi.MachineStatus {
	m.Processes = slices.Clone(m.Processes)
	for i := range m.Processes {
		m.Processes[i].Memory = 0
		m.Processes[i].StartedAt = m.Processes[i].StartedAt.UTC()
		m.Processes[i].LastExitAt = m.Processes[i].LastExitAt.UTC()
	}
	return m
}
