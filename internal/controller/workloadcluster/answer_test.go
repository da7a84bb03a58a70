package workloadcluster

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/contract"
)

// What replaces no machine is not asked about again, and all else is.
func TestQuestion(t *testing.T) {
	base, err := question(full().Cluster, "ns/r-v1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change  func(*v1alpha1.WorkloadCluster)
		release string
		asked   bool
		parts   []string // that are asked about anew
	}{
		"nothing":              {func(*v1alpha1.WorkloadCluster) {}, "ns/r-v1", false, nil},
		"more control planes":  {func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.Replicas = ptr.To[int32](5) }, "ns/r-v1", false, nil},
		"more workers":         {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To[int32](9) }, "ns/r-v1", false, nil},
		"labels and taints":    {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Labels, o.Spec.Workers[1].Taints = nil, nil }, "ns/r-v1", false, nil},
		"paused":               {func(o *v1alpha1.WorkloadCluster) { o.Spec.Paused = nil }, "ns/r-v1", false, nil},
		"a version is pinned":  {func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Version = "v3" }, "ns/r-v1", false, nil},
		"another release":      {func(*v1alpha1.WorkloadCluster) {}, "ns/r-v2", true, []string{"/", "tainted", "zoned"}},
		"other control planes": {func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"/"}},
		"other workers":        {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"zoned"}},
		"other zones":          {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Zones = nil }, "ns/r-v1", true, []string{"zoned"}},
		"a pool more": {func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Workers = append(o.Spec.Workers, v1alpha1.WorkerPool{Name: "new"})
		}, "ns/r-v1", true, []string{"new"}},
		"somebody may log in":   {func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{ClientID: "x"} }, "ns/r-v1", true, nil},
		"another parameter":     {func(o *v1alpha1.WorkloadCluster) { o.Spec.Parameters = nil }, "ns/r-v1", true, nil},
		"deletion is protected": {func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) }, "ns/r-v1", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := full().Cluster
			c.change(o)
			got, err := question(o, c.release)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Question != base.Question) != c.asked {
				t.Errorf("asked again: %t, want %t", got.Question != base.Question, c.asked)
			}
			anew := map[string]bool{}
			for part, d := range got.Parts {
				if base.Parts[part] != d {
					anew[part] = true
				}
			}
			want := map[string]bool{}
			for _, p := range c.parts {
				want[p] = true
			}
			if d := cmp.Diff(want, anew); d != "" {
				t.Error(d)
			}
		})
	}
}

// What a provider says today of machines that were asked for before does not count.
func TestAnswersAreKept(t *testing.T) {
	m := func(flavor string) contract.Machines {
		return contract.Machines{Variables: contract.Values{"flavor": flavor}}
	}
	was := answer{
		Parts:    map[string]string{"/": "1", "a": "2", "b": "3", "gone": "4"},
		Topology: contract.Topology{ControlPlane: m("old"), Pools: map[string]contract.Machines{"a": m("old"), "b": m("old"), "gone": m("old")}},
	}
	now := answer{
		Parts:    map[string]string{"/": "1", "a": "2", "b": "other", "new": "5"},
		Topology: contract.Topology{ControlPlane: m("new"), Pools: map[string]contract.Machines{"a": m("new"), "b": m("new"), "new": m("new")}},
	}
	now.keep(was)
	want := contract.Topology{ControlPlane: m("old"), Pools: map[string]contract.Machines{"a": m("old"), "b": m("new"), "new": m("new")}}
	if d := cmp.Diff(want, now.Topology); d != "" {
		t.Error(d)
	}
	first := answer{Parts: map[string]string{"/": "1"}, Topology: contract.Topology{ControlPlane: m("new")}}
	first.keep(answer{})
	if d := cmp.Diff(m("new"), first.Topology.ControlPlane); d != "" {
		t.Error(d)
	}
}

// It survives on the Cluster, byte by byte: else every run would write it anew.
func TestAnswerIsRead(t *testing.T) {
	d := full()
	a, err := question(d.Cluster, "ns/r-v1")
	if err != nil {
		t.Fatal(err)
	}
	a.Topology = d.Topology
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv1.Cluster{}
	c.Annotations = map[string]string{v1alpha1.AnswerAnnotation: string(first)}
	again, err := json.Marshal(kept(c))
	if err != nil || string(first) != string(again) {
		t.Errorf("%s\n%s\n%v", first, again, err)
	}
	for _, bad := range []string{"", "{", "[]", "null"} {
		c.Annotations[v1alpha1.AnswerAnnotation] = bad
		if d := cmp.Diff(answer{}, kept(c)); d != "" {
			t.Errorf("%q: %s", bad, d)
		}
	}
	if d := cmp.Diff(answer{}, kept(nil)); d != "" {
		t.Error(d)
	}
}
