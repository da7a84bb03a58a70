package topology

import (
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Hold keeps all fields of the topology that would replace machines as they are, while the cluster is not yet at the
// release of its spec: machines would be replaced twice. Numbers of machines follow the spec at once, except for a pool
// that is to be in other zones: machines would go from the old zones before any come to the new ones.
func Hold(c, is *clusterv1.Cluster, o *v1alpha1.WorkloadCluster) {
	there := map[string][]string{} // names of the MachineDeployments of each pool
	for _, m := range is.Spec.Topology.Workers.MachineDeployments {
		pool := m.Metadata.Labels[v1alpha1.PoolLabel]
		there[pool] = append(there[pool], m.Name)
	}
	replicas := map[string]*int32{}
	for _, p := range o.Spec.Workers {
		parts := map[string]*int32{}
		for _, part := range SplitByZone(p) {
			parts[part.Name] = ptr.To(part.Replicas)
		}
		if slices.Equal(slices.Sorted(maps.Keys(parts)), slices.Sorted(slices.Values(there[p.Name]))) {
			maps.Copy(replicas, parts)
		}
	}
	number := c.Spec.Topology.ControlPlane.Replicas
	c.Spec.Topology = *is.Spec.Topology.DeepCopy()
	c.Spec.Topology.ControlPlane.Replicas = number
	for i, m := range c.Spec.Topology.Workers.MachineDeployments {
		if n, ok := replicas[m.Name]; ok {
			c.Spec.Topology.Workers.MachineDeployments[i].Replicas = n
		}
	}
}
