package provider

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// kinds are all that clusters are made of. Templates of the class itself stay, as long as the stack does.
func kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, k := range []string{"Cluster", "Machine", "MachineSet", "MachineDeployment"} {
		out = append(out, clusterv1.GroupVersion.WithKind(k))
	}
	for _, crd := range instantProvider.CRDs() {
		out = append(out, schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind})
	}
	return append(out, corev1.SchemeGroupVersion.WithKind("Secret"), csv1.GroupVersion.WithKind("ClusterAddon"))
}

// names returns the names of all objects of a kind.
func (g *ground) names(k schema.GroupVersionKind) ([]string, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	err := g.mgmt.List(g.Context(), l, client.InNamespace(g.ns))
	var out []string
	for i := range l.Items {
		out = append(out, l.Items[i].GetName())
	}
	return out, err
}

// awaitNothing waits until nothing of any cluster is left in the namespace.
func (g *ground) awaitNothing() {
	g.Helper()
	testenv.Eventually(g, soon, func() error {
		for _, k := range kinds() {
			names, err := g.names(k)
			if err != nil {
				return err
			}
			names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "instant-bare-") }) // the class's
			if len(names) > 0 {
				return fmt.Errorf("%s are left: %v", k.Kind, names)
			}
		}
		return countIs(instantProvider.ClusterCount(g.ns), 0, "clusters in memory")
	})
}

// madeOnce checks that no more Machines than these were ever made: one that was made twice may be gone already. It
// counts events, of which some are lost when there are many.
func (g *ground) madeOnce(want int) {
	g.Helper()
	if n := g.made(); n > want {
		g.Error(countIs(n, want, "Machines made"))
	}
}

// made is how many Machines were made, by their events.
func (g *ground) made() int {
	g.Helper()
	var l corev1.EventList
	if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	n := 0
	for _, e := range l.Items {
		if e.InvolvedObject.Kind == "MachineSet" && e.Reason == "SuccessfulCreate" {
			n += max(1, int(e.Count))
		}
	}
	return n
}

// machines are all Machines, by cluster.
func (g *ground) machines() map[string][]clusterv1.Machine {
	g.Helper()
	var l clusterv1.MachineList
	if err := g.mgmt.List(g.Context(), &l, client.InNamespace(g.ns)); err != nil {
		g.Fatal(err)
	}
	out := map[string][]clusterv1.Machine{}
	for _, m := range l.Items {
		out[m.Spec.ClusterName] = append(out[m.Spec.ClusterName], m)
	}
	return out
}
