package provider

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/providertest"
	"github.com/polder-kaas/polder/test/testenv"
)

// stalled checks that the platform operator must act on a cluster, for this reason and with these words.
func stalled(reason, words string) func(*v1alpha1.WorkloadCluster) error {
	return func(o *v1alpha1.WorkloadCluster) error {
		st := o.Status
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionAccepted)
		if st.Phase != v1alpha1.PhaseStalled || st.Actor != v1alpha1.PlatformOperator || c == nil || c.Reason != reason || !strings.Contains(st.Message, words) {
			return fmt.Errorf("cluster %s is %s, %s must act: %s (%+v)", o.Name, st.Phase, st.Actor, st.Message, c)
		}
		return nil
	}
}

// hangForGood lets so many calls hang whatever becomes of their context, and those after them until it ends. With eight calls
// that never come back the provider is not asked for a cluster again, and a slow machine gets there before the test is done.
func hangForGood(calls int32) providertest.Fault {
	var n atomic.Int32
	return func(c providertest.Call) error {
		if n.Add(1) <= calls {
			return providertest.HangForever()(c)
		}
		return providertest.Hang()(c)
	}
}

// A provider that fails for some clusters harms only those, says so, and they recover by themselves.
func TestFaultsHarmTheirOwnClusters(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	faults := []struct {
		name  string
		fault providertest.Fault
		seen  func(*v1alpha1.WorkloadCluster) error
	}{
		{"panics", providertest.Panic("index out of range"), stalled(v1alpha1.ReasonProviderPanicked, "index out of range")},
		{"hangs", providertest.Hang(), stalled(v1alpha1.ReasonProviderTimedOut, "does not answer")},
		{"hangs-for-good", hangForGood(3), stalled(v1alpha1.ReasonProviderTimedOut, "does not answer")},
		{"revoked", providertest.Fail(providertest.ErrRevoked), stalled(v1alpha1.ReasonProviderFailed, "the credentials were revoked")},
		{"fails", providertest.Fail(providertest.ErrServer), stalled(v1alpha1.ReasonProviderFailed, "500: internal server error")},
	}
	for _, f := range faults {
		faulty.SetClusterFault(f.name, f.fault)
	}
	t.Cleanup(faulty.Release)
	begin := time.Now()
	for _, f := range faults {
		g.cluster(f.name, 0)
	}
	g.cluster("fine", 1)
	for _, f := range faults {
		g.await(f.name, f.seen)
	}
	t.Logf("all are reported after %s", time.Since(begin).Round(time.Millisecond))
	g.await("fine", ready)
	if n := g.clusters(); n != 1 {
		t.Errorf("%d Clusters were made, though only one could be", n)
	}
	for _, f := range faults {
		faulty.SetClusterFault(f.name, nil)
	}
	begin = time.Now()
	for _, f := range faults {
		g.await(f.name, ready)
	}
	t.Logf("all have recovered after %s", time.Since(begin).Round(time.Millisecond))
	if n := g.clusters(); n != len(faults)+1 {
		t.Errorf("%d Clusters", n)
	}
}

// A cluster that runs goes on running while its provider's credentials are revoked. What the provider was asked before
// still holds, so it can be scaled; what it must be asked has to wait.
func TestRevokedWhileItRuns(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.cluster("running", 1)
	g.await("running", ready)
	before := g.machines()["running"]
	faulty.SetClusterFault("running", providertest.Fail(providertest.ErrRevoked))
	g.change("running", func(o *v1alpha1.WorkloadCluster) { *o.Spec.Workers[0].Replicas = 2 })
	g.await("running", ready)
	scaled := g.machines()["running"]
	if len(scaled) != 2 || scaled[0].UID != before[0].UID && scaled[1].UID != before[0].UID {
		t.Errorf("machines before %v and after %v", before, scaled)
	}
	g.change("running", func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = "SCS-8V-16" })
	g.await("running", stalled(v1alpha1.ReasonProviderFailed, "the credentials were revoked"))
	if n := len(g.machines()["running"]); n != 2 {
		t.Errorf("%d machines, though nothing could be changed", n)
	}
	faulty.SetClusterFault("running", nil)
	g.await("running", ready)
	c := &clusterv1.Cluster{}
	if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: "running"}, c); err != nil {
		t.Fatal(err)
	}
	if o := c.Spec.Topology.Workers.MachineDeployments[0].Variables.Overrides; len(o) != 1 || string(o[0].Value.Raw) != `"SCS-8V-16"` {
		t.Errorf("%+v", o)
	}
}

// Whatever becomes of single calls, there is one Cluster in the end.
func TestSingleFaults(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var asked atomic.Int64
	// after the last there is an answer
	script := []providertest.Fault{providertest.Fail(providertest.ErrTooMany), providertest.LoseReply(), providertest.UseMemory(64 << 20)}
	faulty.SetClusterFault("single", func(c providertest.Call) error {
		if c.Method == "Validate" {
			c.Do()
			return nil
		}
		if n := int(asked.Add(1)); n <= len(script) {
			return script[n-1](c)
		}
		c.Do()
		return nil
	})
	g.cluster("single", 0)
	testenv.Eventually(t, soon, func() error {
		n := asked.Load()
		g.change("single", func(o *v1alpha1.WorkloadCluster) { // somebody looks: it is tried again at once
			o.Annotations = map[string]string{"example.org/looked": fmt.Sprint(n)}
		})
		if int(n) < len(script) {
			return fmt.Errorf("the provider was asked %d times", n)
		}
		return nil
	})
	g.await("single", ready)
	if n := g.clusters(); n != 1 {
		t.Errorf("%d Clusters", n)
	}
}

// clusters is how many Clusters there are.
func (g *ground) clusters() int {
	g.Helper()
	var l clusterv1.ClusterList
	if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	return len(l.Items)
}
