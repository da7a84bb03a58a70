// Package topology decides what the Cluster (of Cluster API) of a WorkloadCluster has to be: from its spec, the class
// of its release and the provider's answer. Admission and the controller decide with the same functions. It writes
// nothing, and reads nothing but the class of a release.
package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// BuildInput is all that a Cluster is built from.
type BuildInput struct {
	Cluster        *v1alpha1.WorkloadCluster
	Class          client.ObjectKey
	Release        provider.Release
	Provider       provider.Description
	Topology       provider.Topology // the provider's answer
	PrepareRelease string            // release whose add-ons are applied before the cluster gets its class; "" if none
}

// Build makes the Cluster. The same input gives the same bytes, whatever version of Polder builds it: anything else
// would replace machines.
func Build(d BuildInput) (*clusterv1.Cluster, error) {
	o := d.Cluster
	c := &clusterv1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"}}
	c.Name, c.Namespace = o.Name, o.Namespace
	c.Labels = MergeMaps(d.Topology.Labels, map[string]string{
		v1alpha1.WorkloadClusterLabel: o.Name, v1alpha1.ProviderLabel: o.Spec.Provider,
	})
	c.Annotations = maps.Clone(d.Topology.Annotations)
	if d.PrepareRelease != "" {
		c.Annotations = MergeMaps(c.Annotations, map[string]string{v1alpha1.PrepareAnnotation: d.PrepareRelease})
	}
	c.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind("WorkloadCluster")),
	}
	if ptr.Deref(o.Spec.Paused, false) {
		c.Spec.Paused = ptr.To(true)
	}
	c.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Pods:          clusterv1.NetworkRanges{CIDRBlocks: o.Spec.Network.PodCIDRs},
		Services:      clusterv1.NetworkRanges{CIDRBlocks: o.Spec.Network.ServiceCIDRs},
		ServiceDomain: "cluster.local",
	}
	t := &c.Spec.Topology
	t.ClassRef = clusterv1.ClusterClassRef{Name: d.Class.Name}
	if d.Class.Namespace != o.Namespace {
		t.ClassRef.Namespace = d.Class.Namespace
	}
	t.Version = d.Release.Kubernetes
	t.ControlPlane.Replicas = ptr.To(ptr.Deref(o.Spec.ControlPlane.Replicas, 1))
	var err error
	if t.ControlPlane.Variables.Overrides, err = toClusterVariables(d.Topology.ControlPlane.Variables); err != nil {
		return nil, err
	}
	if t.Workers.MachineDeployments, err = machineDeploymentTopologies(d); err != nil {
		return nil, err
	}
	t.Variables, err = clusterVariables(d)
	return c, err
}

// ProviderVariableError says that the customer sets variables which the provider sets too. Nobody knows which value is
// meant, and the provider's may be what keeps customers apart.
type ProviderVariableError struct {
	Provider   string
	Parameters []string
}

func (e *ProviderVariableError) Error() string {
	return fmt.Sprintf("parameters that provider %s sets by itself: %s", e.Provider, strings.Join(e.Parameters, ", "))
}

// clusterVariables returns the variables of the class, each with the customer's value, the provider's, or the class's
// default. Defaults are written too: Cluster API would write those of the first release and keep them, so a later
// release's would never take effect.
func clusterVariables(d BuildInput) ([]clusterv1.ClusterVariable, error) {
	values := provider.Values{}
	for _, v := range d.Release.Variables {
		if def, ok := v.Schema["default"]; ok {
			values[v.Name] = def
		}
	}
	maps.Copy(values, d.Topology.Variables)
	var taken []string
	for _, name := range slices.Sorted(maps.Keys(d.Cluster.Spec.Parameters)) {
		if _, own := d.Provider.Parameters[name]; own || !d.Release.Has(name) {
			continue // the provider makes a variable of it, or only another release has it
		}
		if _, ok := d.Topology.Variables[name]; ok {
			taken = append(taken, name)
		}
		var value any
		if err := json.Unmarshal(d.Cluster.Spec.Parameters[name].Raw, &value); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		values[name] = value
	}
	if len(taken) > 0 {
		return nil, &ProviderVariableError{d.Provider.Name, taken}
	}
	return toClusterVariables(values)
}

// toClusterVariables converts values into variables, sorted by name.
func toClusterVariables(values provider.Values) ([]clusterv1.ClusterVariable, error) {
	var out []clusterv1.ClusterVariable
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b, err := json.Marshal(values[name])
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		out = append(out, clusterv1.ClusterVariable{Name: name, Value: provider.JSON{Raw: b}})
	}
	return out, nil
}

// machineDeploymentTopologies returns the topologies of the worker pools, in their order. A pool with zones has one for
// each zone.
func machineDeploymentTopologies(d BuildInput) ([]clusterv1.MachineDeploymentTopology, error) {
	var out []clusterv1.MachineDeploymentTopology
	for _, p := range d.Cluster.Spec.Workers {
		given := d.Topology.Pools[p.Name]
		overrides, err := toClusterVariables(given.Variables)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, err)
		}
		class, err := workerClass(d.Release, given.Class)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, err)
		}
		for _, part := range SplitByZone(p) {
			m := clusterv1.MachineDeploymentTopology{
				Name: part.Name, Class: class, FailureDomain: part.Zone, Replicas: ptr.To(part.Replicas),
			}
			m.Metadata.Labels = MergeMaps(p.Labels, map[string]string{v1alpha1.PoolLabel: p.Name})
			// Propagated always: otherwise Cluster API sets taints only when a node is new.
			for _, t := range p.Taints {
				m.Taints = append(m.Taints, clusterv1.MachineTaint{
					Key: t.Key, Value: t.Value, Effect: t.Effect, Propagation: clusterv1.MachineTaintPropagationAlways,
				})
			}
			m.Variables.Overrides = overrides
			out = append(out, m)
		}
	}
	return out, nil
}

// workerClass returns the class of workers that the provider names; without a name, the first of the release.
func workerClass(r provider.Release, name string) (string, error) {
	switch {
	case name != "" && !slices.Contains(r.Workers, name):
		return "", fmt.Errorf("release %s has no class of workers %q", r.Name, name)
	case name != "":
		return name, nil
	case len(r.Workers) == 0:
		return "", fmt.Errorf("release %s has no class of workers", r.Name)
	}
	return r.Workers[0], nil
}

// ZonePool is a pool without zones, or the part of a pool that is in one zone.
type ZonePool struct {
	Name, Zone string
	Replicas   int32
}

// SplitByZone divides a pool evenly among its zones. The first zones get the remainder.
func SplitByZone(p v1alpha1.WorkerPool) []ZonePool {
	n := ptr.Deref(p.Replicas, 1)
	if len(p.Zones) == 0 {
		return []ZonePool{{Name: p.Name, Replicas: n}}
	}
	var out []ZonePool
	zones := int32(len(p.Zones)) //nolint:gosec // there are at most 16
	for i, z := range p.Zones {
		part := ZonePool{Name: p.Name + "-" + z, Zone: z, Replicas: n / zones}
		if int32(i) < n%zones {
			part.Replicas++
		}
		out = append(out, part)
	}
	return out
}

// MergeMaps returns a new map with the entries of both. Where both have a key, b wins.
func MergeMaps(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}
