package provider

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

var (
	silentClusters = flag.Int("silent", 4, "how many clusters do not answer") // from 16 on they would keep all workers busy
	besideClusters = flag.Int("beside", 2, "how many clusters are made beside them")
	checkTimes     = flag.Bool("check-times", false, "compare times, on a machine that does nothing else")
)

// maxAsked is how often in a minute all who want to reach a cluster may try, once it is known not to answer: three managers of
// Cluster API, the operator, and our own probes. Before the pauses between their attempts grew, it was over twenty without those.
const maxAsked = 18

// maxKnown is how long it may take until requests to all silent clusters fail at once, from the moment they were asked for.
const maxKnown = 30 * time.Second

// Some clusters take connections and never answer, most from the beginning, some since they were ready. Others get ready as fast
// as without them, they are left alone for longer and longer, and they are well once they answer.
func TestSilentClusters(t *testing.T) { // alone: it compares times
	g := newGround(t)
	silent, lost, others := *silentClusters, max(1, *besideClusters/8), *besideClusters
	g.makeClusters("silent-lost", lost)
	g.awaitClusters("silent-lost", lost)
	calm := g.readyTimes("calm", others)
	g.removeClusters("calm", others) // the others have as much company as these
	instantProvider.SetSilent(func(n types.NamespacedName) bool { return n.Namespace == g.ns && strings.HasPrefix(n.Name, "silent-") })
	t.Cleanup(func() { instantProvider.SetSilent(nil) })
	g.makeClusters("silent-new", silent)
	waiting := sampleWaiting()
	first := g.readyTimes("first", 4) // made with the silent ones, which takes its time, too
	known := g.awaitUnreachable("silent-new", silent)
	beside := g.readyTimes("beside", others)
	all, ratio := waiting(), float64(percentile(beside, 95))/float64(percentile(calm, 95))
	t.Logf("%d clusters ready without silent ones: p50 %s, p95 %s", others, percentile(calm, 50), percentile(calm, 95))
	t.Logf("%d clusters made with %d silent ones, which are known to be silent after %s: at most %s", len(first), silent, known, slices.Max(first))
	t.Logf("%d clusters ready beside %d silent ones: p50 %s, p95 %s (%.2f times)", others, silent, percentile(beside, 50), percentile(beside, 95), ratio)
	t.Logf("requests that wait at a time: p50 %d, p95 %d", percentile(all, 50), percentile(all, 95))
	if *checkTimes && ratio > 1.5 {
		t.Error("clusters that do not answer hold up the others")
	}
	if *checkTimes && known > maxKnown {
		t.Error("it takes too long until requests to silent clusters fail at once")
	}
	asked := askedPerMinute(silent + lost)
	t.Logf("a silent cluster is asked %.1f times a minute", asked)
	if *checkTimes && asked > maxAsked { // with few others to wait for, the pauses have not grown yet
		t.Error("clusters that do not answer are asked too often")
	}
	instantProvider.SetSilent(nil)
	begin := time.Now()
	g.awaitClusters("silent-new", silent)
	t.Logf("those that answer at last are ready after %s", time.Since(begin).Round(time.Millisecond))
	g.removeAll()
}

func (g *ground) makeClusters(prefix string, n int) {
	g.Helper()
	for i := range n {
		g.cluster(fmt.Sprint(prefix, "-", i), 0)
	}
}

func (g *ground) awaitClusters(prefix string, n int) {
	g.Helper()
	for i := range n {
		g.await(fmt.Sprint(prefix, "-", i), ready)
	}
}

// awaitUnreachable waits until the add-ons of clusters say that nobody asks these in vain any more, and returns how long the
// last of them took from its creation.
func (g *ground) awaitUnreachable(prefix string, n int) (took time.Duration) {
	g.Helper()
	for i := range n {
		name := fmt.Sprint(prefix, "-", i)
		testenv.Eventually(g, soon, func() error {
			var o csv1.ClusterAddon
			if err := g.mgmt.Get(g.Context(), types.NamespacedName{Namespace: g.ns, Name: csv1.AddonPrefix + name}, &o); err != nil {
				return err
			}
			c := meta.FindStatusCondition(o.Status.Conditions, csv1.ConditionClusterReady)
			if c == nil || c.Reason != csv1.ReasonUnreachable || !strings.Contains(c.Message, "has not answered since") {
				return fmt.Errorf("%s: %+v", name, c)
			}
			took = max(took, time.Since(o.CreationTimestamp.Time).Round(time.Second))
			return nil
		})
	}
	return took
}

// askedPerMinute counts for half a minute how often each silent cluster is asked.
func askedPerMinute(clusters int) float64 {
	const window = 30 * time.Second
	_, before := instantProvider.Waiting()
	<-time.After(window)
	_, after := instantProvider.Waiting()
	return float64(after-before) / float64(clusters) / window.Minutes()
}

// readyTimes makes clusters, four at a time, and returns how long each takes to be ready.
func (g *ground) readyTimes(prefix string, n int) []time.Duration {
	g.Helper()
	made, begun, took := 0, map[string]time.Time{}, []time.Duration{}
	testenv.Eventually(g, 4*soon, func() error {
		for ; made < n && len(begun) < 4; made++ {
			name := fmt.Sprint(prefix, "-", made)
			begun[name] = time.Now()
			g.cluster(name, int32(made%2))
		}
		var l v1alpha1.WorkloadClusterList
		if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
			return err
		}
		for _, o := range l.Items {
			if since, ok := begun[o.Name]; ok && o.Status.ObservedGeneration == o.Generation && ready(&o) == nil {
				took = append(took, time.Since(since).Round(time.Millisecond))
				delete(begun, o.Name)
			}
		}
		if len(took) < n {
			return fmt.Errorf("%d of %d clusters are ready", len(took), n)
		}
		return nil
	})
	return took
}

// sampleWaiting counts those who wait for silent clusters, again and again, until the function it returns is called.
func sampleWaiting() (stop func() []int) {
	var all []int
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for t := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-end:
				t.Stop()
				return
			case <-t.C:
				now, _ := instantProvider.Waiting()
				all = append(all, now)
			}
		}
	})
	return func() []int {
		close(end)
		wg.Wait()
		return all
	}
}

func percentile[T int | time.Duration](all []T, p int) T {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, len(all)*p/100)]
}

// removeClusters deletes clusters and waits until they are gone.
func (g *ground) removeClusters(prefix string, n int) {
	g.Helper()
	for i := range n {
		o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: g.ns, Name: fmt.Sprint(prefix, "-", i)}}
		if err := g.mgmt.Delete(g.Context(), o); err != nil {
			g.Fatal(err)
		}
	}
	testenv.Eventually(g, 4*soon, func() error {
		var l v1alpha1.WorkloadClusterList
		if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
			return err
		}
		if slices.ContainsFunc(l.Items, func(o v1alpha1.WorkloadCluster) bool { return strings.HasPrefix(o.Name, prefix) }) {
			return fmt.Errorf("clusters %s are still there", prefix)
		}
		return nil
	})
}

// removeAll deletes all clusters and waits until nothing is left.
func (g *ground) removeAll() {
	g.Helper()
	if err := g.mgmt.DeleteAllOf(g.Context(), &v1alpha1.WorkloadCluster{}, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	g.awaitNothing()
}
