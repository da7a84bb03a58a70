package workloadcluster

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestCheckUpgrade(t *testing.T) {
	for name, c := range map[string]struct{ from, to, reason string }{
		"the same":               {"v1.35.7", "v1.35.7", ""},
		"a patch up":             {"v1.35.7", "v1.35.8", ""},
		"a patch down":           {"v1.35.7", "v1.35.6", v1alpha1.ReasonVersionLower},
		"a minor up":             {"v1.35.7", "v1.36.0", ""},
		"two minors up":          {"v1.35.7", "v1.37.0", v1alpha1.ReasonVersionSkips},
		"a minor down":           {"v1.36.3", "v1.35.9", v1alpha1.ReasonVersionLower},
		"the minor it has":       {"v1.36.3", "1.36", ""},
		"a minor down, alone":    {"v1.36.3", "1.35", v1alpha1.ReasonVersionLower},
		"a minor up, alone":      {"v1.36.3", "1.37", ""},
		"two minors up, alone":   {"v1.36.3", "1.38", v1alpha1.ReasonVersionSkips},
		"nobody knows from what": {"", "v1.36.3", ""},
		"nobody knows to what":   {"v1.36.3", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, reason := CheckUpgrade(c.from, c.to)
			if reason != c.reason || (why == "") != (c.reason == "") {
				t.Errorf("%q %q, want %q", why, reason, c.reason)
			}
		})
	}
}

func TestLowestVersion(t *testing.T) {
	v := func(s string, n int32) clusterv1.StatusVersion {
		return clusterv1.StatusVersion{Version: s, Replicas: n}
	}
	for want, all := range map[string][]clusterv1.StatusVersion{
		"":        {v("v1.36.3", 0), v("rubbish", 2)},
		"v1.35.7": {v("v1.36.3", 2), v("v1.35.7", 1)},
		"v1.36.3": {v("v1.36.3", 2), v("v1.35.7", 0)},
		"v1.9.1":  {v("v1.10.0", 1), v("v1.9.1", 1)},
		"v1.34.1": {v("v1.34.1", 0), v("v1.35.1", 0)},
	} {
		if got := lowestVersion(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestIsSubset(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		want, have any
		is         bool
	}{
		"the same":                   {m{"a": "b"}, m{"a": "b"}, true},
		"more":                       {m{"a": "b"}, m{"a": "b", "c": "d"}, true},
		"less":                       {m{"a": "b", "c": "d"}, m{"a": "b"}, false},
		"another value":              {m{"a": "b"}, m{"a": "c"}, false},
		"deep":                       {m{"a": m{"b": int64(1)}}, m{"a": m{"b": int64(1), "c": true}}, true},
		"deep, another":              {m{"a": m{"b": int64(1)}}, m{"a": m{"b": int64(2)}}, false},
		"no map":                     {m{"a": m{}}, m{"a": "x"}, false},
		"a list with more in it":     {[]any{m{"a": "b"}}, []any{m{"a": "b", "c": "d"}}, true},
		"a longer list":              {[]any{"a"}, []any{"a", "b"}, false},
		"a list in another order":    {[]any{"a", "b"}, []any{"b", "a"}, false},
		"no list":                    {[]any{"a"}, "a", false},
		"an empty map, and nothing":  {m{}, nil, false},
		"an empty list, and nothing": {[]any{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isSubset(c.want, c.have); got != c.is {
				t.Errorf("%t, want %t", got, c.is)
			}
		})
	}
}

// poolTopology is a part of a pool, as Cluster API was told.
func poolTopology(pool, name string, n int32) clusterv1.MachineDeploymentTopology {
	m := clusterv1.MachineDeploymentTopology{Name: name, Class: "w", Replicas: ptr.To(n)}
	m.Metadata.Labels = map[string]string{v1alpha1.PoolLabel: pool}
	return m
}

// While a cluster is held at its release, nothing that replaces machines is changed; numbers are.
func TestHoldTopology(t *testing.T) {
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
	holdTopology(want, is, o)
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
func TestHoldTopologyZones(t *testing.T) {
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
			holdTopology(got, is, o)
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
func TestCheckRollout(t *testing.T) {
	ok := func() controlPlane {
		var c controlPlane
		c.Spec.Replicas = ptr.To[int32](3)
		c.Status.ObservedGeneration = 2
		c.Status.Replicas, c.Status.UpToDateReplicas, c.Status.AvailableReplicas = ptr.To[int32](3), ptr.To[int32](3), ptr.To[int32](3)
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: metav1.ConditionFalse, ObservedGeneration: 2}}
		return c
	}
	for name, c := range map[string]struct {
		change func(*controlPlane)
		late   bool
	}{
		"all is done":                  {func(*controlPlane) {}, false},
		"it has not looked":            {func(c *controlPlane) { c.Status.ObservedGeneration = 1 }, true},
		"it rolls":                     {func(c *controlPlane) { c.Status.Conditions[0].Status = metav1.ConditionTrue }, true},
		"nobody knows if it must roll": {func(c *controlPlane) { c.Status.Conditions[0].ObservedGeneration = 1 }, true},
		"one is too many":              {func(c *controlPlane) { c.Status.Replicas = ptr.To[int32](4) }, true},
		"one is old":                   {func(c *controlPlane) { c.Status.UpToDateReplicas = ptr.To[int32](2) }, true},
		"one is away":                  {func(c *controlPlane) { c.Status.AvailableReplicas = ptr.To[int32](2) }, true},
		"one that does not count":      {func(c *controlPlane) { *c = controlPlane{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cp := ok()
			c.change(&cp)
			if got := cp.checkRollout(2); (got != "") != c.late {
				t.Errorf("%q, want late: %t", got, c.late)
			}
		})
	}
}
