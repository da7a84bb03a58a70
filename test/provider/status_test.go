package provider

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// All that our kinds have in their status is lost, as in a move or a restore of what people have written. It is built
// anew from what there is, and no machine is made again.
func TestStatusIsLost(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	o := g.cluster("lost", 2)
	g.await("lost", ready)
	before := g.identities()
	lists := []client.ObjectList{&v1alpha1.WorkloadClusterList{}, &csv1.ClusterStackList{}, &csv1.ClusterStackReleaseList{}, &csv1.ClusterAddonList{}}
	n := 0
	for _, l := range lists {
		n += g.dropStatus(l)
	}
	if n < 4 {
		t.Fatalf("only %d objects had a status to lose", n)
	}
	begin := time.Now()
	g.await("lost", ready)
	testenv.Eventually(t, soon, func() error {
		s := &csv1.ClusterStackRelease{}
		if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: "instant-bare-1-37-v1"}, s); err != nil {
			return err
		}
		if s.Status.Ready == nil || !*s.Status.Ready || len(s.Status.Resources) == 0 {
			return fmt.Errorf("the release is not ready again: %+v", s.Status)
		}
		return nil
	})
	t.Logf("%d objects have their status again after %s", n, time.Since(begin).Round(time.Millisecond))
	if after := g.identities(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("Cluster and machines were %v, and are %v", before, after)
	}
	g.madeOnce(2)
	g.remove(o)
	g.awaitGone(o)
	g.awaitNothing()
}

// dropStatus removes the status of all objects of a kind, and returns of how many.
func (g *ground) dropStatus(l client.ObjectList) (n int) {
	g.Helper()
	if err := g.mgmt.List(g.Context(), l, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	var all []client.Object
	switch l := l.(type) {
	case *v1alpha1.WorkloadClusterList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *csv1.ClusterStackList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *csv1.ClusterStackReleaseList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *csv1.ClusterAddonList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	for _, o := range all {
		if err := g.mgmt.Status().Patch(g.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))); err != nil {
			g.Fatal(err)
		}
	}
	return len(all)
}

// identities are the UIDs of the Clusters and machines.
func (g *ground) identities() map[string]types.UID {
	g.Helper()
	out := map[string]types.UID{}
	var l clusterv1.ClusterList
	if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	for _, c := range l.Items {
		out["Cluster "+c.Name] = c.UID
	}
	for _, all := range g.machines() {
		for _, m := range all {
			out[m.Spec.ProviderID] = m.UID
		}
	}
	return out
}
