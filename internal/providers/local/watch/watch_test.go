package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

var localCluster = &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lc", UID: "u", Labels: map[string]string{"a": "b"}}}

// fakeHost answers watches as a host does, with the responses it is given.
type fakeHost struct {
	dir       hostapi.Dir
	server    *http.Server
	requests  chan int64 // the revision of each question
	responses chan hostapi.Status
}

func newFakeHost(t *testing.T) *fakeHost {
	t.Helper()
	d := processtest.ShortDir(t, "watch")
	h := &fakeHost{dir: hostapi.Dir(d), requests: make(chan int64, 100), responses: make(chan hostapi.Status)}
	h.start(t)
	return h
}

func (h *fakeHost) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", h.dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	h.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var since int64
		_, _ = fmt.Sscan(r.URL.Query().Get("since"), &since)
		h.requests <- since
		select {
		case s := <-h.responses:
			_ = json.NewEncoder(w).Encode(s)
		case <-r.Context().Done():
		}
	})}
	go func() { _ = h.server.Serve(l) }()
	t.Cleanup(func() { _ = h.server.Close() })
}

// startWatcher runs the watcher and ends it with the test.
func startWatcher(t *testing.T, w *Watcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Start(ctx) }()
	t.Cleanup(func() { cancel(); receive(t, "the watcher to end", done) })
}

func receive[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// collectEvents collects n events, of the cluster or of machines.
func collectEvents(t *testing.T, w *Watcher, n int) (all []string) {
	t.Helper()
	for range n {
		select {
		case e := <-w.Clusters:
			all = append(all, fmt.Sprintf("cluster %s/%s", e.Object.Namespace, e.Object.Name))
		case e := <-w.Machines:
			all = append(all, fmt.Sprintf("machine %s/%s", e.Object.Namespace, e.Object.Name))
		case <-time.After(30 * time.Second):
			t.Fatalf("waited in vain; heard %q", all)
		}
	}
	return all
}

func TestWatchHost(t *testing.T) {
	h, w := newFakeHost(t), New()
	startWatcher(t, w)
	w.WatchHost(localCluster, h.dir)
	w.WatchHost(localCluster, h.dir) // once more makes no difference
	one := hostapi.Status{Revision: 5, PID: 1, Machines: []hostapi.MachineStatus{{Name: "a"}, {Name: "b"}}}
	if since := receive(t, "a question", h.requests); since != 0 {
		t.Errorf("first asked since %d", since)
	}
	h.responses <- one
	if d := cmp.Diff([]string{"cluster ns/lc", "machine ns/a", "machine ns/b"}, collectEvents(t, w, 3)); d != "" {
		t.Error(d)
	}
	if since := receive(t, "a question", h.requests); since != 5 {
		t.Errorf("asked since %d, want 5", since)
	}
	if n := len(h.requests); n > 0 {
		t.Errorf("%d follow at the same time", n+1)
	}

	_ = h.server.Close() // with the host all its machines are gone
	if d := cmp.Diff([]string{"cluster ns/lc", "machine ns/a", "machine ns/b"}, collectEvents(t, w, 3)); d != "" {
		t.Error(d)
	}
	h.start(t) // and back, which is news even if it looks as before
	if since := receive(t, "a question", h.requests); since != 0 {
		t.Errorf("asked a new host since %d", since)
	}
	h.responses <- one
	if d := cmp.Diff([]string{"cluster ns/lc", "machine ns/a", "machine ns/b"}, collectEvents(t, w, 3)); d != "" {
		t.Error(d)
	}

	w.UnwatchHost("u")
	w.UnwatchHost("u")
	w.UnwatchHost("another")
	w.WatchHost(localCluster, h.dir)
	for since := int64(-1); since != 0; { // the question of before may still be there
		since = receive(t, "a question after it was forgotten", h.requests)
	}
}

func TestWatchHostBeforeStart(t *testing.T) {
	h, w := newFakeHost(t), New()
	w.WatchHost(localCluster, h.dir)
	other := localCluster.DeepCopy()
	other.UID = "other"
	w.WatchHost(other, h.dir)
	w.UnwatchHost("other")
	startWatcher(t, w)
	receive(t, "a question", h.requests)
	h.responses <- hostapi.Status{Revision: 1, PID: 1}
	collectEvents(t, w, 1)
	receive(t, "a question", h.requests)
	if len(h.requests) > 0 {
		t.Error("one that was forgotten is followed")
	}
}

func TestStartEndsWithNobodyListening(t *testing.T) {
	h, w := newFakeHost(t), New()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Start(ctx) })
	w.WatchHost(localCluster, h.dir)
	receive(t, "a question", h.requests)
	h.responses <- hostapi.Status{PID: 1, Machines: []hostapi.MachineStatus{{Name: "a"}}}
	cancel() // while it tries to send an event
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	receive(t, "the watcher to end", done)
	w.WatchHost(&infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID("late")}}, h.dir)
	w.wg.Wait() // nothing was begun
}

func TestChangedMachines(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	process := func(change func(*hostapi.ProcessStatus)) []hostapi.MachineStatus {
		p := hostapi.ProcessStatus{Name: "etcd", PID: 7, StartedAt: at, Memory: 1 << 20, Command: []string{"etcd"}}
		change(&p)
		return []hostapi.MachineStatus{{Name: "a", Processes: []hostapi.ProcessStatus{p}}}
	}
	same := func(*hostapi.ProcessStatus) {}
	a, b := hostapi.MachineStatus{Name: "a"}, hostapi.MachineStatus{Name: "b"}
	for name, c := range map[string]struct {
		old, now []hostapi.MachineStatus
		want     []string
	}{
		"nothing there":          {},
		"a new machine":          {old: []hostapi.MachineStatus{a}, now: []hostapi.MachineStatus{a, b}, want: []string{"b"}},
		"machines that are gone": {old: []hostapi.MachineStatus{b, a}, want: []string{"a", "b"}},
		"nothing happened":       {old: process(same), now: process(same)},
		"memory":                 {old: process(same), now: process(func(p *hostapi.ProcessStatus) { p.Memory = 2 << 20 })},
		"a time in another zone": {old: process(same), now: process(func(p *hostapi.ProcessStatus) { p.StartedAt = at.In(time.FixedZone("x", 3600)) })},
		"it became ready":        {old: process(same), now: process(func(p *hostapi.ProcessStatus) { p.Ready = true }), want: []string{"a"}},
		"it was restarted":       {old: process(same), now: process(func(p *hostapi.ProcessStatus) { p.Restarts++ }), want: []string{"a"}},
		"it ended":               {old: process(same), now: process(func(p *hostapi.ProcessStatus) { p.PID, p.LastExit = 0, "exited" }), want: []string{"a"}},
		"the boot goes on": {old: []hostapi.MachineStatus{a}, now: []hostapi.MachineStatus{{Name: "a", Boot: hostapi.BootStatus{Step: "certs"}}},
			want: []string{"a"}},
		"another machine of that name": {old: []hostapi.MachineStatus{a}, now: []hostapi.MachineStatus{{Name: "a", UID: "new"}}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, changedMachines(c.old, c.now)); d != "" {
				t.Error(d)
			}
			for _, m := range c.old {
				if len(m.Processes) > 0 && m.Processes[0].Memory == 0 {
					t.Error("what was compared was changed")
				}
			}
		})
	}
}

func TestNotifiesTheCluster(t *testing.T) {
	one := hostapi.Status{PID: 1, Revision: 1}
	for name, c := range map[string]struct {
		now  hostapi.Status
		want int
	}{
		"nothing happened": {hostapi.Status{PID: 1, Revision: 2, Memory: 5, Serving: []string{"a"}}, 0},
		"another host":     {hostapi.Status{PID: 2}, 1},
		"a problem":        {hostapi.Status{PID: 1, Problem: "no endpoint"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := New()
			done := make(chan struct{})
			go func() { defer close(done); w.notifyChanges(t.Context(), localCluster.ObjectMeta, one, c.now) }()
			collectEvents(t, w, c.want)
			receive(t, "the end of telling", done)
		})
	}
}
