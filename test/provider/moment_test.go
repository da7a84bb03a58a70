package provider

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

var seed = flag.Uint64("seed", 0, "repeat the random choices of an earlier run; 0 takes others")

// choices are random, and can be repeated with -seed.
func choices(t *testing.T) *rand.Rand {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("repeat it with -seed %d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// maxMoment is how many changes of a WorkloadCluster there are, more or less, until it is ready and has been scaled.
const maxMoment = 20

// Clusters are deleted at any moment, counted in changes of their objects: while they are made, while they are ready and
// scaled, or before anybody has seen them. Nothing is left, in the plane or in the cloud.
func TestManyDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	random := choices(t)
	watching, err := client.NewWithWatch(shared.Get(t).RESTConfig(t), client.Options{Scheme: g.mgmt.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	n := max(1, *many/5)
	g.patience = soon * time.Duration(n) / 200 // they are deleted at once, and wait for each other
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range n {
		o, moment := g.cluster(fmt.Sprint("moment-", i), int32(i%2)), random.IntN(maxMoment)
		wg.Go(func() { g.deleteAt(watching, o, moment) })
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i := range n {
		o := &v1alpha1.WorkloadCluster{}
		o.Namespace, o.Name = g.ns, fmt.Sprint("moment-", i)
		g.awaitGone(o)
	}
	g.awaitNothing()
	t.Logf("%d clusters were deleted at some moment, all are gone after %s", n, time.Since(begin).Round(time.Millisecond))
}

// deleteAt deletes a cluster after so many changes of it, and scales it on the way. One that does not change any more is
// deleted as it is.
func (g *ground) deleteAt(watching client.WithWatch, o *v1alpha1.WorkloadCluster, moment int) {
	w, err := watching.Watch(g.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace(g.ns), client.MatchingFields{"metadata.name": o.Name})
	if err != nil {
		g.Error(err)
		return
	}
	defer w.Stop()
	for seen := 0; seen < moment; seen++ {
		var e watch.Event
		select {
		case e = <-w.ResultChan():
		case <-g.Context().Done():
			return
		}
		now, ok := e.Object.(*v1alpha1.WorkloadCluster)
		if !ok || now.Status.Phase == v1alpha1.PhaseReady && len(now.Spec.Workers) == 0 {
			break
		}
		if now.Status.Phase != v1alpha1.PhaseReady || now.Status.ObservedGeneration != now.Generation {
			continue
		}
		if *now.Spec.Workers[0].Replicas > 1 {
			break // it was scaled already
		}
		before := now.DeepCopy()
		*now.Spec.Workers[0].Replicas = 2
		if err := g.mgmt.Patch(g.Context(), now, client.MergeFrom(before)); err != nil {
			g.Error(err)
		}
	}
	if err := g.mgmt.Delete(g.Context(), o); err != nil {
		g.Error(err)
	}
}
