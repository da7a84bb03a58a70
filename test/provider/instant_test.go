package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/workload"
	"github.com/polder-kaas/polder/test/testenv"
)

func TestOneCluster(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	begin := time.Now()
	g.cluster("one", 2)
	o := g.await("one", ready)
	t.Logf("ready after %s", time.Since(begin).Round(time.Millisecond))
	if v := o.Status.Versions; v.Kubernetes != "v1.37.1" || v.Workers != "v1.37.1" || v.Release != "instant-bare-1-37-v1" {
		t.Errorf("versions: %+v", v)
	}
	c := &clusterv1.Cluster{}
	if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); err != nil {
		t.Fatal(err)
	}
	g.parameters(c)
	nodes := g.nodes(c)
	testenv.Eventually(t, soon, func() error { // Cluster API writes that a Machine is ready a moment before it writes which node it has
		for _, m := range g.machines()["one"] {
			n, ok := nodes[m.Spec.ProviderID]
			if !ok || n.Name != m.Status.NodeRef.Name || n.Status.NodeInfo.KubeletVersion != m.Spec.Version || n.Status.Capacity.Cpu().Value() != 4 {
				return fmt.Errorf("machine %s with %s has the node %+v", m.Name, m.Spec.ProviderID, n.Status)
			}
		}
		return nil
	})
	made := 2
	for _, n := range []int32{3, 1, 6, 2} { // each machine is made once, also on a machine that is busy
		if has := int32(len(g.machines()["one"])); has < n {
			made += int(n - has)
		}
		g.change("one", func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = &n })
		g.await("one", ready)
		testenv.Eventually(t, soon, func() error { return countIs(len(g.nodes(c)), int(n), "nodes") })
		if m := len(g.machines()["one"]); m != int(n) {
			t.Errorf("%d machines, not %d", m, n)
		}
	}
	g.madeOnce(made)
	begin = time.Now()
	g.remove(o)
	g.awaitGone(o)
	t.Logf("gone after %s", time.Since(begin).Round(time.Millisecond))
	g.awaitNothing()
}

// A rule of the class is known before anything is stored, and Cluster API knows the same.
func TestRuleOfTheClass(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	const rule = "it must not begin or end with a space"
	o := &v1alpha1.WorkloadCluster{}
	o.Namespace, o.Name = g.ns, "spaced"
	o.Spec.Provider, o.Spec.Stack = "instant", v1alpha1.StackReference{Name: "bare", KubernetesVersion: "1.37"}
	o.Spec.Parameters = map[string]apiextensionsv1.JSON{"note": {Raw: []byte(`" x"`)}}
	if err := g.mgmt.Create(t.Context(), o, client.DryRunAll); err == nil || !strings.Contains(err.Error(), `spec.parameters.note: Invalid value: " x": `+rule) {
		t.Errorf("by admission: %v", err)
	}
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = g.ns, "spaced"
	c.Spec.Topology.ClassRef.Name, c.Spec.Topology.Version = "instant-bare-1-37-v1", "v1.37.1"
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "note", Value: apiextensionsv1.JSON{Raw: []byte(`" x"`)}}}
	if err := g.mgmt.Create(t.Context(), c, client.DryRunAll); err == nil || !strings.Contains(err.Error(), rule) {
		t.Errorf("by Cluster API: %v", err)
	}
}

// parameters checks that the customer's parameter has come through the class.
func (g *ground) parameters(c *clusterv1.Cluster) {
	g.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("instant.polder.dev/v1alpha1")
	u.SetKind("InstantCluster")
	if err := g.mgmt.Get(g.Context(), client.ObjectKey{Namespace: g.ns, Name: c.Spec.InfrastructureRef.Name}, u); err != nil {
		g.Fatal(err)
	}
	if note, _, _ := unstructured.NestedString(u.Object, "spec", "note"); note != "of "+c.Name {
		g.Errorf("the note is %q", note)
	}
}

// nodes returns those of a workload cluster, by provider ID, as controllers see them.
func (g *ground) nodes(c *clusterv1.Cluster) map[string]corev1.Node {
	g.Helper()
	w, err := (&workload.Clusters{Secrets: g.mgmt, UserAgent: "test"}).Get(g.Context(), client.ObjectKeyFromObject(c))
	if err != nil {
		g.Fatal(err)
	}
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion("v1")
	l.SetKind("NodeList")
	if err := w.Client.List(g.Context(), l); err != nil {
		g.Fatal(err)
	}
	out := map[string]corev1.Node{}
	for _, u := range l.Items {
		var n corev1.Node
		if err := fromUnstructured(u, &n); err != nil {
			g.Fatal(err)
		}
		out[n.Spec.ProviderID] = n
	}
	return out
}
