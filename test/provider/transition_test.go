package provider

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

var transitions = flag.Int("transitions", 8, "how often a cluster goes to another random spec and back")

// A cluster goes from its spec to a random other one and back: Cluster API is asked for the same as before. And what it
// is asked for there is what it would be asked for a new cluster of that spec.
func TestTransitions(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	random := choices(t)
	g.cluster("moving", 1)
	g.await("moving", applied)
	at := &v1alpha1.WorkloadCluster{}
	for i := range *transitions {
		if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: "moving"}, at); err != nil {
			t.Fatal(err)
		}
		home, away := *at.Spec.DeepCopy(), randomSpec(random, at.Spec)
		before := g.topology("moving")
		g.change("moving", func(o *v1alpha1.WorkloadCluster) { o.Spec = away })
		g.await("moving", applied)
		there := g.topology("moving")
		twin := &v1alpha1.WorkloadCluster{}
		twin.Namespace, twin.Name, twin.Spec = g.ns, fmt.Sprint("twin-", i), away
		g.create(twin)
		g.await(twin.Name, applied)
		if d := cmp.Diff(g.topology(twin.Name), there); d != "" {
			t.Errorf("transition %d to %+v: a new cluster is asked for otherwise (-new, +changed):\n%s", i, away, d)
		}
		g.remove(twin)
		g.change("moving", func(o *v1alpha1.WorkloadCluster) { o.Spec = home })
		g.await("moving", applied)
		if d := cmp.Diff(before, g.topology("moving")); d != "" {
			t.Errorf("transition %d to %+v and back does not end as it began (-before, +after):\n%s", i, away, d)
		}
		if random.IntN(2) == 0 { // half of the time it stays where it was going
			g.change("moving", func(o *v1alpha1.WorkloadCluster) { o.Spec = away })
			g.await("moving", applied)
		}
	}
	g.await("moving", func(o *v1alpha1.WorkloadCluster) error { return ready(o) })
}

// applied checks that Cluster API has been asked for what the spec says.
func applied(o *v1alpha1.WorkloadCluster) error {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionApplied)
	if c == nil || c.Status != "True" || c.ObservedGeneration != o.Generation {
		return fmt.Errorf("cluster %s at generation %d: %+v", o.Name, o.Generation, c)
	}
	return nil
}

// topology is what Cluster API is asked for, without what differs between clusters of one spec.
func (g *ground) topology(name string) clusterv1.Topology {
	g.Helper()
	c := &clusterv1.Cluster{}
	if err := g.mgmt.Get(g.Context(), client.ObjectKey{Namespace: g.ns, Name: name}, c); err != nil {
		g.Fatal(err)
	}
	return c.Spec.Topology
}

// randomSpec changes all that may be changed, at random. Pools are small or empty: it is what Cluster API is asked for
// that counts here.
func randomSpec(random *rand.Rand, from v1alpha1.WorkloadClusterSpec) v1alpha1.WorkloadClusterSpec {
	s := *from.DeepCopy()
	types := []string{"SCS-2V-4", "SCS-4V-8", "SCS-8V-16"}
	s.Workers = nil
	for _, name := range []string{"pool", "other", "third"} {
		if random.IntN(2) == 0 {
			continue
		}
		p := v1alpha1.WorkerPool{Name: name, Replicas: ptr.To(int32(random.IntN(2)))}
		if random.IntN(3) > 0 {
			p.MachineType = types[random.IntN(len(types))]
		}
		if random.IntN(2) == 0 {
			p.Labels = map[string]string{"example.org/" + name: fmt.Sprint(random.IntN(100))}
		}
		if random.IntN(3) == 0 {
			p.Taints = []v1alpha1.Taint{{Key: "example.org/only", Value: name, Effect: "NoSchedule"}}
		}
		s.Workers = append(s.Workers, p)
	}
	s.Parameters = map[string]apiextensionsv1.JSON{}
	if random.IntN(3) > 0 {
		s.Parameters["note"] = apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", fmt.Sprint("n", random.IntN(1000)))}
	}
	s.DeletionProtection = nil
	return s
}
