// Package watch watches the hosts of local clusters and sends controllers events for what changed.
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
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// retryInterval is the delay after a host did not answer.
const retryInterval = 500 * time.Millisecond

// Watcher watches hosts. It is a Runnable of a controller manager, which starts it together with the controllers that
// ask it to watch: what they ask for before it is started begins then.
type Watcher struct {
	// Clusters and Machines get an event for each object that may have to be reconciled.
	Clusters chan event.TypedGenericEvent[*infrav1.LocalCluster]
	Machines chan event.TypedGenericEvent[*infrav1.LocalMachine]
	// Serve, if there is one, runs for each host as long as it is watched.
	Serve func(ctx context.Context, host *hostapi.Client)

	mu    sync.Mutex
	ctx   context.Context       // nil: not yet started, or ended
	hosts map[string]*hostWatch // by the UID of the LocalCluster
	wg    sync.WaitGroup
}

// hostWatch is one host that is watched, and how to end that.
type hostWatch struct {
	key    metav1.ObjectMeta
	host   *hostapi.Client
	cancel context.CancelFunc // nil: not yet begun
}

// New prepares a watcher.
func New() *Watcher {
	return &Watcher{
		Clusters: make(chan event.TypedGenericEvent[*infrav1.LocalCluster]),
		Machines: make(chan event.TypedGenericEvent[*infrav1.LocalMachine]),
		hosts:    map[string]*hostWatch{},
	}
}

// Start watches until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, f := range w.hosts {
		w.startWatch(f)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil // nothing is begun any more
	w.mu.Unlock()
	w.wg.Wait()
	return nil
}

// WatchHost begins to watch the host of a cluster, unless it is watched already.
func (w *Watcher) WatchHost(c *infrav1.LocalCluster, dir hostapi.Dir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := string(c.UID)
	if w.hosts[uid] != nil {
		return
	}
	f := &hostWatch{key: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID}, host: hostapi.NewClient(dir)}
	w.hosts[uid] = f
	w.startWatch(f)
}

// startWatch begins to watch, if the watcher was started. The lock must be held.
func (w *Watcher) startWatch(f *hostWatch) {
	if w.ctx == nil {
		return
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(w.ctx)
	if w.Serve != nil {
		w.wg.Go(func() { w.Serve(ctx, f.host) })
	}
	w.wg.Go(func() { w.watchLoop(ctx, f.key, f.host) })
}

// UnwatchHost ends watching a host.
func (w *Watcher) UnwatchHost(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.hosts[uid]; f != nil && f.cancel != nil {
		f.cancel()
	}
	delete(w.hosts, uid)
}

func (w *Watcher) watchLoop(ctx context.Context, key metav1.ObjectMeta, host *hostapi.Client) {
	var last hostapi.Status
	answered := true
	for ctx.Err() == nil {
		s, err := host.Watch(ctx, last.Revision)
		if err != nil {
			if answered {
				w.notifyChanges(ctx, key, last, hostapi.Status{Problem: err.Error()})
			}
			// A new host is asked since revision 0, so that it answers at once; that the old one is gone was notified
			// above.
			answered, last = false, hostapi.Status{}
			sleep(ctx, retryInterval)
			continue
		}
		w.notifyChanges(ctx, key, last, s)
		answered, last = true, s
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// notifyChanges sends events for the cluster and the machines that differ.
func (w *Watcher) notifyChanges(ctx context.Context, key metav1.ObjectMeta, old, now hostapi.Status) {
	if old.PID != now.PID || old.Problem != now.Problem {
		sendEvent(ctx, w.Clusters, &infrav1.LocalCluster{ObjectMeta: key})
	}
	for _, name := range changedMachines(old.Machines, now.Machines) {
		sendEvent(ctx, w.Machines, &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}})
	}
}

func sendEvent[T any](ctx context.Context, to chan<- event.TypedGenericEvent[T], object T) {
	select {
	case to <- event.TypedGenericEvent[T]{Object: object}:
	case <-ctx.Done():
	}
}

// changedMachines names the machines that are new, different or gone.
func changedMachines(old, now []hostapi.MachineStatus) (names []string) {
	before := map[string]hostapi.MachineStatus{}
	for _, m := range old {
		before[m.Name] = withoutVolatileFields(m)
	}
	for _, m := range now {
		if b, ok := before[m.Name]; !ok || !reflect.DeepEqual(b, withoutVolatileFields(m)) {
			names = append(names, m.Name)
		}
		delete(before, m.Name)
	}
	return append(names, slices.Sorted(maps.Keys(before))...)
}

// withoutVolatileFields drops memory figures, which change all the time, and time zones, which do not matter.
func withoutVolatileFields(m hostapi.MachineStatus) hostapi.MachineStatus {
	m.Processes = slices.Clone(m.Processes)
	for i := range m.Processes {
		m.Processes[i].Memory = 0
		m.Processes[i].StartedAt = m.Processes[i].StartedAt.UTC()
		m.Processes[i].LastExitAt = m.Processes[i].LastExitAt.UTC()
	}
	return m
}
