package topology

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// poolTopology makes the MachineDeployment topology of a pool, or of one zone of it.
func poolTopology(pool, name string, n int32) clusterv1.MachineDeploymentTopology {
	m := clusterv1.MachineDeploymentTopology{Name: name, Class: "w", Replicas: ptr.To(n)}
	m.Metadata.Labels = map[string]string{v1alpha1.PoolLabel: pool}
	return m
}

// While a cluster is held at its release, nothing that replaces machines changes. Numbers do.
func TestHold(t *testing.T) {
	is, want := &clusterv1.Cluster{}, &clusterv1.Cluster{}
	pool := func(name string, n int32) clusterv1.MachineDeploymentTopology { return poolTopology(name, name, n) }
	is.Spec.Topology = clusterv1.Topology{
		Version: "v1.35.7", ClassRef: clusterv1.ClusterClassRef{Name: "old"}, ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To[int32](1)},
		Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{pool("a", 1), pool("b", 1)}},
	}
	want.Spec.Topology = clusterv1.Topology{
		Version: "v1.36.3", ClassRef: clusterv1.ClusterClassRef{Name: "new"}, ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To[int32](3)},
	}
	o := &v1alpha1.WorkloadCluster{}
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", Replicas: ptr.To[int32](4)}, {Name: "c"}}
	Hold(want, is, o)
	top := want.Spec.Topology
	if top.Version != "v1.35.7" || top.ClassRef.Name != "old" || *top.ControlPlane.Replicas != 3 {
		t.Errorf("%+v", top)
	}
	mds := top.Workers.MachineDeployments
	if len(mds) != 2 || *mds[0].Replicas != 4 || *mds[1].Replicas != 1 || mds[1].Name != "b" {
		t.Errorf("%+v", mds)
	}
	if *is.Spec.Topology.ControlPlane.Replicas != 1 || *is.Spec.Topology.Workers.MachineDeployments[0].Replicas != 1 {
		t.Error("what is there was changed")
	}
}

// A pool that is to be in other zones keeps its machines until it gets those of the new zones.
func TestHoldZones(t *testing.T) {
	for name, c := range map[string]struct {
		have []clusterv1.MachineDeploymentTopology
		want v1alpha1.WorkerPool
		then []int32
	}{
		"more machines": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 2), poolTopology("w", "w-b", 2)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](7), Zones: []string{"a", "b"}}, []int32{4, 3},
		},
		"the same zones in another order": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 2), poolTopology("w", "w-b", 1)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](3), Zones: []string{"b", "a"}}, []int32{1, 2},
		},
		"a zone more": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 4)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](4), Zones: []string{"a", "b"}}, []int32{4},
		},
		"a zone more, and more machines": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 4)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](6), Zones: []string{"a", "b"}}, []int32{4},
		},
		"a zone less": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 2), poolTopology("w", "w-b", 2)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](4), Zones: []string{"a"}}, []int32{2, 2},
		},
		"another zone": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 2), poolTopology("w", "w-b", 2)},
			v1alpha1.WorkerPool{Name: "w", Replicas: ptr.To[int32](2), Zones: []string{"b", "c"}}, []int32{2, 2},
		},
		"a new pool that is called as a part of another": {
			[]clusterv1.MachineDeploymentTopology{poolTopology("w", "w-a", 4)}, v1alpha1.WorkerPool{Name: "w-a", Replicas: ptr.To[int32](1)}, []int32{4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, o := &clusterv1.Cluster{}, &v1alpha1.WorkloadCluster{}
			is.Spec.Topology.Workers.MachineDeployments = c.have
			o.Spec.Workers = []v1alpha1.WorkerPool{c.want}
			got := &clusterv1.Cluster{}
			Hold(got, is, o)
			var then []int32
			for _, m := range got.Spec.Topology.Workers.MachineDeployments {
				then = append(then, *m.Replicas)
			}
			if !slices.Equal(then, c.then) {
				t.Errorf("%v, want %v", then, c.then)
			}
		})
	}
}
