package provider

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// sizes are those of the pools of clusters, one after the other; 0 is no pool. Most have none: it is clusters that
// are counted here.
var sizes = []int32{0, 1, 0, 0, 0, 0, 0, 2, 0, 0}

// many is how many clusters are made at once. Each costs the plane some seconds of CPU time.
var many = flag.Int("clusters", 50, "how many clusters are made at once")

// checkMemory lets the plane collect garbage as it does for people. Memory for 200 clusters is a promise.
var checkMemory = flag.Bool("check-memory", false, "check how much memory the plane takes for the clusters")

const maxMemory = 1536 << 20

func TestManyClusters(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.patience = time.Duration(*many) * 4 * time.Second // they become ready nearly all at once, at the end
	begin := time.Now()
	want := map[string]int32{}
	var all []*v1alpha1.WorkloadCluster
	for i := range *many {
		name, n := fmt.Sprint("many-", i), sizes[i%len(sizes)]
		all, want[name] = append(all, g.cluster(name, n)), n
	}
	for name := range want {
		g.await(name, ready)
	}
	t.Logf("%d clusters ready after %s", *many, time.Since(begin).Round(time.Millisecond))
	g.countAll(want)
	memory := shared.Get(t).Memory(t)
	t.Logf("polderd has %s", memory)
	if *checkMemory && memory.Peak > maxMemory {
		t.Errorf("more than %d MiB", maxMemory>>20)
	}
	machines := 0
	for _, n := range want {
		machines += int(n)
	}
	g.madeOnce(machines)
	begin = time.Now()
	for _, o := range all {
		g.remove(o)
	}
	for _, o := range all {
		g.awaitGone(o)
	}
	t.Logf("%d clusters gone after %s", *many, time.Since(begin).Round(time.Millisecond))
	g.awaitNothing()
}

// countAll checks that each cluster and each machine is there once.
func (g *ground) countAll(want map[string]int32) {
	g.Helper()
	clusters, err := g.names(clusterv1.GroupVersion.WithKind("Cluster"))
	if err != nil {
		g.Fatal(err)
	}
	if err := countIs(len(clusters), len(want), "Clusters"); err != nil {
		g.Error(err)
	}
	machines, ids, total := g.machines(), map[string]string{}, 0
	for name, n := range want {
		total += int(n)
		if err := countIs(len(machines[name]), int(n), "machines of cluster "+name); err != nil {
			g.Error(err)
		}
		for _, m := range machines[name] {
			if other, twice := ids[m.Spec.ProviderID]; twice {
				g.Errorf("machines %s and %s are one, %s", m.Name, other, m.Spec.ProviderID)
			}
			ids[m.Spec.ProviderID] = m.Name
		}
	}
	for kind, n := range map[string]int{"InstantCluster": len(want), "InstantControlPlane": len(want), "InstantMachine": total, "InstantConfig": total} {
		names, err := g.names(schema.GroupVersionKind{Group: "instant.polder.dev", Version: "v1alpha1", Kind: kind})
		if err != nil {
			g.Fatal(err)
		}
		if err := countIs(len(names), n, kind+"s"); err != nil {
			g.Error(err)
		}
	}
}

func countIs(n, want int, of string) error {
	if n != want {
		return fmt.Errorf("there are %d %s, not %d", n, of, want)
	}
	return nil
}

func fromUnstructured(u unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}
