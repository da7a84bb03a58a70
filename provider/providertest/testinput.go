package providertest

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// testInput is one input that a provider is tried with.
type testInput struct {
	name            string
	cluster         *v1alpha1.WorkloadCluster
	release         provider.Release
	selectsMachines bool // it asks for machines of a size
}

// input is a fresh copy: what a provider does with one must not be seen in the next.
func (c testInput) input() provider.Input {
	return provider.Input{Cluster: c.cluster.DeepCopy(), Release: cloneRelease(c.release)}
}

// shuffled is the same input, whose maps were filled in another order.
func (c testInput) shuffled() provider.Input {
	in := c.input()
	in.Cluster.Spec.Parameters = refill(in.Cluster.Spec.Parameters)
	for i := range in.Cluster.Spec.Workers {
		in.Cluster.Spec.Workers[i].Labels = refill(in.Cluster.Spec.Workers[i].Labels)
	}
	for i := range in.Release.Variables {
		in.Release.Variables[i].Schema = refill(in.Release.Variables[i].Schema)
	}
	return in
}

func refill[V any](m map[string]V) map[string]V {
	if m == nil {
		return nil
	}
	out := make(map[string]V, 4*len(m))
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(m))) {
		out[k] = m[k]
	}
	return out
}

func cloneRelease(r provider.Release) provider.Release {
	r.Variables, r.Workers = slices.Clone(r.Variables), slices.Clone(r.Workers)
	for i := range r.Variables {
		r.Variables[i].Schema = runtime.DeepCopyJSON(r.Variables[i].Schema)
	}
	return r
}

// testInputs are the inputs for one release, from the plainest to the strangest that admission accepts.
func testInputs(d provider.Description, r provider.Release) []testInput {
	var out []testInput
	add := func(name string, sized bool, change func(*v1alpha1.WorkloadClusterSpec)) {
		c := sampleCluster(r)
		change(&c.Spec)
		out = append(out, testInput{
			name: fmt.Sprintf("%s, of release %s", name, r.Name), cluster: c, release: r, selectsMachines: sized,
		})
	}
	add("a cluster without workers", false, func(s *v1alpha1.WorkloadClusterSpec) { s.Workers = nil })
	add("a cluster with the provider's default machines", false, func(*v1alpha1.WorkloadClusterSpec) {})
	for _, name := range machineTypeNames(d) {
		add("a cluster with machines "+name, true,
			func(s *v1alpha1.WorkloadClusterSpec) { selectMachines(s, v1alpha1.MachineSelection{MachineType: name}) })
	}
	shape := &v1alpha1.MachineShape{CPU: 2, Memory: resource.MustParse("4Gi"), Disk: ptr.To(resource.MustParse("20Gi"))}
	add("a cluster with machines of a shape", true,
		func(s *v1alpha1.WorkloadClusterSpec) { selectMachines(s, v1alpha1.MachineSelection{Machine: shape}) })
	add("a cluster with a pool of no machines", false,
		func(s *v1alpha1.WorkloadClusterSpec) { s.Workers[0].Replicas = ptr.To[int32](0) })
	add("a cluster with 100 pools", false, func(s *v1alpha1.WorkloadClusterSpec) {
		for len(s.Workers) < 100 {
			s.Workers = append(s.Workers, v1alpha1.WorkerPool{
				Name: fmt.Sprint("pool-", len(s.Workers)), Replicas: ptr.To[int32](1),
			})
		}
	})
	add("a cluster with OpenID Connect", false, func(s *v1alpha1.WorkloadClusterSpec) {
		s.OIDC = &v1alpha1.OIDC{
			IssuerURL: "https://issuer.example.org", ClientID: "kubernetes", UsernameClaim: "email", GroupsPrefix: "oidc:",
		}
	})
	if len(d.Zones) > 0 {
		add("a cluster with zones", false, func(s *v1alpha1.WorkloadClusterSpec) { s.Workers[0].Zones = d.Zones })
	}
	return out
}

// machineTypeNames are names of machine types to ask for: portable ones, one of the provider's own, and one that nobody
// has.
func machineTypeNames(d provider.Description) []string {
	out := []string{"SCS-2V-4", "SCS-4V-8", "nobody-has-this"}
	if len(d.MachineTypes) > 0 {
		out = append(out, d.MachineTypes[0].Name)
	}
	return out
}

func selectMachines(s *v1alpha1.WorkloadClusterSpec, m v1alpha1.MachineSelection) {
	s.ControlPlane.MachineSelection = m
	for i := range s.Workers {
		s.Workers[i].MachineSelection = *m.DeepCopy()
	}
}

// sampleCluster is a cluster as admission leaves it, with one pool.
func sampleCluster(r provider.Release) *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{}
	o.Namespace, o.Name, o.UID, o.Generation = "customer", "demo", "00000000-0000-4000-8000-000000000000", 1
	o.Spec.Stack = v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37", Channel: v1alpha1.ChannelStable}
	o.Spec.ControlPlane.Replicas = ptr.To[int32](1)
	o.Spec.Network = v1alpha1.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/16"}}
	o.Spec.Workers = []v1alpha1.WorkerPool{
		{Name: "pool", Replicas: ptr.To[int32](2), Labels: map[string]string{"tier": "web", "colour": "green"}},
	}
	if r.Has("note") {
		o.Spec.Parameters = map[string]apiextensionsv1.JSON{"note": {Raw: []byte(`"hello"`)}}
	}
	return o
}
