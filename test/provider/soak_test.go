//go:build soak

package provider

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/providertest"
	"github.com/polder-kaas/polder/test/testenv"
)

var (
	soakTime     = flag.Duration("soak", 2*time.Hour, "how long faults are made")
	soakClusters = flag.Int("soak-clusters", 20, "how many clusters there are")
	soakHeaps    = flag.String("soak-heaps", "", "directory for profiles of the heap, of the beginning and the end of what is measured")
	soakPause    = flag.Duration("soak-pause", 30*time.Second, "from one fault to the next, at least")
)

// Growth that is no leak: caches fill, and the collector comes late.
const (
	maxGoroutineGrowth = 1.05
	maxMemoryGrowth    = 1.10
)

// soak is a plane with clusters that faults are made on.
type soak struct {
	*ground
	*rand.Rand
	plane *testenv.Plane
	made  int
}

// TestSoak makes one random fault after the other, and expects every cluster to be ready again after each. In the second half none
// of them ends polderd: then neither its goroutines nor its memory may grow.
func TestSoak(t *testing.T) {
	s := &soak{ground: newGround(t), Rand: choices(t), plane: shared.Get(t)}
	for range *soakClusters {
		s.makeCluster()
	}
	s.settle("the start")
	begin, counts := time.Now(), map[string]int{}
	for time.Since(begin) < *soakTime/2 {
		s.makeFault(counts, append(s.harmless(), s.deadly()...))
	}
	for time.Since(begin) < *soakTime*6/10 { // the caches of the last process fill
		s.makeFault(counts, s.harmless())
	}
	first, measured := s.measure(), time.Now()
	s.writeHeap("first")
	for time.Since(begin) < *soakTime {
		s.makeFault(counts, s.harmless())
	}
	last := s.measure()
	s.writeHeap("last")
	hours := time.Since(measured).Hours()
	t.Logf("faults: %v", counts)
	t.Logf("goroutines %d, then %d; memory %d MiB, then %d MiB; live objects %.1f MiB, then %.1f MiB (%+.1f %% an hour)", first.goroutines,
		last.goroutines, first.memory>>20, last.memory>>20, float64(first.live)/(1<<20), float64(last.live)/(1<<20),
		(float64(last.live)/float64(first.live)-1)*100/hours)
	if float64(last.goroutines) > float64(first.goroutines)*maxGoroutineGrowth+20 {
		t.Error("goroutines grow")
	}
	if float64(last.live) > float64(first.live)*maxMemoryGrowth {
		t.Error("memory grows")
	}
	s.removeAll()
}

// fault is one that can be made; what it returns undoes it.
type fault struct {
	name string
	make func() (undo func())
}

// makeFault makes one of the faults, waits, undoes it, and waits until all is well.
func (s *soak) makeFault(counts map[string]int, of []fault) {
	s.Helper()
	f := of[s.IntN(len(of))]
	counts[f.name]++
	next := time.Now().Add(*soakPause)
	undo := f.make()
	s.change(s.anyCluster(), func(o *v1alpha1.WorkloadCluster) { // something is to be done meanwhile
		o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "pool", Replicas: ptr.To(s.Int32N(3)), MachineSelection: v1alpha1.MachineSelection{MachineType: "SCS-4V-8"}}}
	})
	<-time.After(time.Until(next) / 2)
	undo()
	s.settle(f.name)
	<-time.After(time.Until(next))
}

// harmless are faults that polderd survives.
func (s *soak) harmless() []fault {
	nothing := func() {}
	return []fault{
		{"silent workload APIs", func() func() {
			instantProvider.SetSilent(func(n types.NamespacedName) bool { return len(n.Name)%5 == 0 })
			return func() { instantProvider.SetSilent(nil) }
		}},
		{"provider panics", func() func() { return s.failProvider(providertest.Panic("soak")) }},
		{"provider fails", func() func() { return s.failProvider(providertest.Fail(providertest.ErrServer)) }},
		{"provider hangs", func() func() { return s.failProvider(providertest.Hang()) }},
		{"status is lost", func() func() { s.dropStatus(&v1alpha1.WorkloadClusterList{}); return nothing }},
		{"machines deleted by hand", func() func() { s.deleteMachines(s.anyCluster()); return nothing }},
		{"a cluster goes, another comes", func() func() {
			o := &v1alpha1.WorkloadCluster{}
			o.Namespace, o.Name = s.ns, s.anyCluster()
			s.remove(o)
			s.awaitGone(o)
			s.makeCluster()
			return nothing
		}},
		{"polderd is paused", func() func() {
			s.signal(syscall.SIGSTOP)
			<-time.After(3 * time.Second)
			s.signal(syscall.SIGCONT)
			return nothing
		}},
	}
}

// deadly are faults that end polderd; it is started again.
func (s *soak) deadly() []fault {
	again := func() func() {
		s.plane.Start(s, shared.Flags...)
		s.plane.AwaitReady(s)
		return func() {}
	}
	return []fault{
		{"polderd is killed", func() func() { s.plane.Kill(); return again() }},
		{"polderd is stopped", func() func() {
			if code := s.plane.Signal(s, syscall.SIGTERM, time.Minute); code != 0 {
				s.Errorf("polderd ended with %d", code)
			}
			return again()
		}},
	}
}

func (s *soak) failProvider(f providertest.Fault) (undo func()) {
	name := s.anyCluster()
	faulty.SetClusterFault(name, f)
	return func() { faulty.SetClusterFault(name, nil) }
}

func (s *soak) signal(sig syscall.Signal) {
	s.Helper()
	if err := syscall.Kill(s.plane.PID(), sig); err != nil {
		s.Fatal(err)
	}
}

func (s *soak) makeCluster() {
	s.Helper()
	s.cluster(fmt.Sprint("soak-", s.made), int32(s.made%2))
	s.made++
}

// clusterNames are those of the clusters that are not being deleted.
func (s *soak) clusterNames() (out []string) {
	s.Helper()
	var l v1alpha1.WorkloadClusterList
	testenv.Eventually(s, soon, func() error { return s.mgmt.List(s.Context(), &l, client.InNamespace(s.ns)) })
	for _, o := range l.Items {
		if o.DeletionTimestamp.IsZero() {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *soak) anyCluster() string {
	all := s.clusterNames()
	return all[s.IntN(len(all))]
}

// deleteMachines deletes the Machines of a cluster.
func (s *soak) deleteMachines(cluster string) {
	s.Helper()
	err := s.mgmt.DeleteAllOf(s.Context(), &clusterv1.Machine{}, client.InNamespace(s.ns), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	if err != nil {
		s.Error(err)
	}
}

// settle waits until all clusters are ready.
func (s *soak) settle(after string) {
	s.Helper()
	begin := time.Now()
	for _, name := range s.clusterNames() {
		s.await(name, ready)
	}
	s.Logf("all is well %s after: %s", time.Since(begin).Round(time.Millisecond), after)
}

// writeHeap writes a profile of polderd's heap; "go tool pprof -base first last" shows what has grown.
func (s *soak) writeHeap(name string) {
	s.Helper()
	if *soakHeaps == "" {
		return
	}
	profile := s.plane.GetPath(s, "/debug/pprof/heap?gc=1")
	if err := os.WriteFile(filepath.Join(*soakHeaps, name+".pprof"), []byte(profile), 0o600); err != nil {
		s.Fatal(err)
	}
}

// usage is what must not grow. Memory of the process depends on when the collector came; live objects do not.
type usage struct{ goroutines, memory, live int64 }

// measure returns the least of a minute: what polderd needs when there is little to do.
func (s *soak) measure() usage {
	s.Helper()
	u := usage{1 << 62, 1 << 62, 1 << 62}
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		u.memory = min(u.memory, s.plane.Memory(s).RSS)
		for line := range strings.Lines(s.plane.GetPath(s, "/metrics")) {
			var n float64
			if got, _ := fmt.Sscanf(line, "go_goroutines %g", &n); got == 1 {
				u.goroutines = min(u.goroutines, int64(n))
			}
			if got, _ := fmt.Sscanf(line, "go_gc_heap_live_bytes %g", &n); got == 1 {
				u.live = min(u.live, int64(n))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	return u
}
