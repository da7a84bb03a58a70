package topology

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// A change that replaces no machines does not ask the provider again, and every other change does.
func TestDigestProviderInput(t *testing.T) {
	description := fullInput().Provider
	base, err := DigestInput(fullInput().Cluster, "ns/r-v1", description)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"/", "tainted", "zoned"}
	for name, c := range map[string]struct {
		change  func(*v1alpha1.WorkloadCluster)
		release string
		asked   bool
		parts   []string // whose digest changes
	}{
		"nothing":              {func(*v1alpha1.WorkloadCluster) {}, "ns/r-v1", false, nil},
		"more control planes":  {func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.Replicas = ptr.To[int32](5) }, "ns/r-v1", false, nil},
		"more workers":         {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To[int32](9) }, "ns/r-v1", false, nil},
		"labels and taints":    {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Labels, o.Spec.Workers[1].Taints = nil, nil }, "ns/r-v1", false, nil},
		"paused":               {func(o *v1alpha1.WorkloadCluster) { o.Spec.Paused = nil }, "ns/r-v1", false, nil},
		"a version is pinned":  {func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Version = "v3" }, "ns/r-v1", false, nil},
		"another release":      {func(*v1alpha1.WorkloadCluster) {}, "ns/r-v2", true, all},
		"other control planes": {func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"/"}},
		"other workers":        {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"zoned"}},
		"other zones":          {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Zones = nil }, "ns/r-v1", true, []string{"zoned"}},
		"a pool more": {func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Workers = append(o.Spec.Workers, v1alpha1.WorkerPool{Name: "new"})
		}, "ns/r-v1", true, []string{"new"}},
		"somebody may log in":            {func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{ClientID: "x"} }, "ns/r-v1", true, all},
		"another parameter of the stack": {func(o *v1alpha1.WorkloadCluster) { delete(o.Spec.Parameters, "certSANs") }, "ns/r-v1", true, nil},
		"another value of the provider's": {func(o *v1alpha1.WorkloadCluster) { o.Spec.Parameters["costCentre"] = provider.JSON{Raw: []byte("1")} }, "ns/r-v1", true,
			all},
		"one less of the provider's": {func(o *v1alpha1.WorkloadCluster) { delete(o.Spec.Parameters, "costCentre") }, "ns/r-v1", true, all},
		"deletion is protected":      {func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) }, "ns/r-v1", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := fullInput().Cluster
			c.change(o)
			got, err := DigestInput(o, c.release, description)
			if err != nil {
				t.Fatal(err)
			}
			if (got.InputDigest != base.InputDigest) != c.asked {
				t.Errorf("asked again: %t, want %t", got.InputDigest != base.InputDigest, c.asked)
			}
			anew := map[string]bool{}
			for part, d := range got.PartDigests {
				if base.PartDigests[part] != d {
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

// The first parameter of a stack leaves the digests of parts as they are: it is none of the provider's.
func TestFirstParameter(t *testing.T) {
	before, err := DigestInput(bareInput().Cluster, "ns/r-v1", bareInput().Provider)
	if err != nil {
		t.Fatal(err)
	}
	o := bareInput().Cluster
	o.Spec.Parameters = map[string]provider.JSON{"certSANs": {Raw: []byte(`["x"]`)}}
	after, err := DigestInput(o, "ns/r-v1", bareInput().Provider)
	if err != nil || after.InputDigest == before.InputDigest {
		t.Errorf("%+v, %v", after, err)
	}
	if d := cmp.Diff(before.PartDigests, after.PartDigests); d != "" {
		t.Error(d)
	}
}

// What a provider says today about machines whose input is the same does not count.
func TestKeepUnchangedParts(t *testing.T) {
	m := func(flavor string) provider.Machines {
		return provider.Machines{Variables: provider.Values{"flavor": flavor}}
	}
	was := Answer{
		PartDigests: map[string]string{"/": "1", "a": "2", "b": "3", "gone": "4"},
		Topology:    provider.Topology{ControlPlane: m("old"), Pools: map[string]provider.Machines{"a": m("old"), "b": m("old"), "gone": m("old")}},
	}
	now := Answer{
		PartDigests: map[string]string{"/": "1", "a": "2", "b": "other", "new": "5"},
		Topology:    provider.Topology{ControlPlane: m("new"), Pools: map[string]provider.Machines{"a": m("new"), "b": m("new"), "new": m("new")}},
	}
	now.KeepUnchangedParts(was)
	want := provider.Topology{ControlPlane: m("old"), Pools: map[string]provider.Machines{"a": m("old"), "b": m("new"), "new": m("new")}}
	if d := cmp.Diff(want, now.Topology); d != "" {
		t.Error(d)
	}
	first := Answer{PartDigests: map[string]string{"/": "1"}, Topology: provider.Topology{ControlPlane: m("new")}}
	first.KeepUnchangedParts(Answer{})
	if d := cmp.Diff(m("new"), first.Topology.ControlPlane); d != "" {
		t.Error(d)
	}
}

// An answer is the same, byte by byte, after it was read from the Cluster. Otherwise every reconcile would write it
// again.
func TestReadAnswer(t *testing.T) {
	d := fullInput()
	a, err := DigestInput(d.Cluster, "ns/r-v1", d.Provider)
	if err != nil {
		t.Fatal(err)
	}
	a.Topology = d.Topology
	a.Topology.Variables = provider.Values{"large": int64(9007199254740993), "small": 0.1}
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv1.Cluster{}
	c.Annotations = map[string]string{v1alpha1.AnswerAnnotation: string(first)}
	again, err := json.Marshal(ReadAnswer(c))
	if err != nil || string(first) != string(again) {
		t.Errorf("%s\n%s\n%v", first, again, err)
	}
	for _, bad := range []string{"", "{", "[]", "null"} {
		c.Annotations[v1alpha1.AnswerAnnotation] = bad
		if d := cmp.Diff(Answer{}, ReadAnswer(c)); d != "" {
			t.Errorf("%q: %s", bad, d)
		}
	}
	if d := cmp.Diff(Answer{}, ReadAnswer(nil)); d != "" {
		t.Error(d)
	}
}
