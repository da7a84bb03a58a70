package workloadcluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// What replaces no machine is not asked about again, and all else is.
func TestDigestProviderInput(t *testing.T) {
	description := fullInput().Provider
	base, err := digestProviderInput(fullInput().Cluster, "ns/r-v1", description)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"/", "tainted", "zoned"}
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
		"another release":      {func(*v1alpha1.WorkloadCluster) {}, "ns/r-v2", true, all},
		"other control planes": {func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"/"}},
		"other workers":        {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = "SCS-8V-16" }, "ns/r-v1", true, []string{"zoned"}},
		"other zones":          {func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Zones = nil }, "ns/r-v1", true, []string{"zoned"}},
		"a pool more": {func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Workers = append(o.Spec.Workers, v1alpha1.WorkerPool{Name: "new"})
		}, "ns/r-v1", true, []string{"new"}},
		"somebody may log in":             {func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{ClientID: "x"} }, "ns/r-v1", true, all},
		"another parameter of the stack":  {func(o *v1alpha1.WorkloadCluster) { delete(o.Spec.Parameters, "certSANs") }, "ns/r-v1", true, nil},
		"another value of the provider's": {func(o *v1alpha1.WorkloadCluster) { o.Spec.Parameters["costCentre"] = provider.JSON{Raw: []byte("1")} }, "ns/r-v1", true, all},
		"one less of the provider's":      {func(o *v1alpha1.WorkloadCluster) { delete(o.Spec.Parameters, "costCentre") }, "ns/r-v1", true, all},
		"deletion is protected":           {func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) }, "ns/r-v1", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := fullInput().Cluster
			c.change(o)
			got, err := digestProviderInput(o, c.release, description)
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

// A cluster whose first parameter is of the stack is as one that has none of the provider's.
func TestFirstParameter(t *testing.T) {
	before, err := digestProviderInput(bareInput().Cluster, "ns/r-v1", bareInput().Provider)
	if err != nil {
		t.Fatal(err)
	}
	o := bareInput().Cluster
	o.Spec.Parameters = map[string]provider.JSON{"certSANs": {Raw: []byte(`["x"]`)}}
	after, err := digestProviderInput(o, "ns/r-v1", bareInput().Provider)
	if err != nil || after.InputDigest == before.InputDigest {
		t.Errorf("%+v, %v", after, err)
	}
	if d := cmp.Diff(before.PartDigests, after.PartDigests); d != "" {
		t.Error(d)
	}
}

// What a provider says today of machines that were asked for before does not count.
func TestKeepUnchangedParts(t *testing.T) {
	m := func(flavor string) provider.Machines {
		return provider.Machines{Variables: provider.Values{"flavor": flavor}}
	}
	was := providerAnswer{
		PartDigests: map[string]string{"/": "1", "a": "2", "b": "3", "gone": "4"},
		Topology:    provider.Topology{ControlPlane: m("old"), Pools: map[string]provider.Machines{"a": m("old"), "b": m("old"), "gone": m("old")}},
	}
	now := providerAnswer{
		PartDigests: map[string]string{"/": "1", "a": "2", "b": "other", "new": "5"},
		Topology:    provider.Topology{ControlPlane: m("new"), Pools: map[string]provider.Machines{"a": m("new"), "b": m("new"), "new": m("new")}},
	}
	now.keepUnchangedParts(was)
	want := provider.Topology{ControlPlane: m("old"), Pools: map[string]provider.Machines{"a": m("old"), "b": m("new"), "new": m("new")}}
	if d := cmp.Diff(want, now.Topology); d != "" {
		t.Error(d)
	}
	first := providerAnswer{PartDigests: map[string]string{"/": "1"}, Topology: provider.Topology{ControlPlane: m("new")}}
	first.keepUnchangedParts(providerAnswer{})
	if d := cmp.Diff(m("new"), first.Topology.ControlPlane); d != "" {
		t.Error(d)
	}
}

// It survives on the Cluster, byte by byte: else every run would write it anew.
func TestReadAnswer(t *testing.T) {
	d := fullInput()
	a, err := digestProviderInput(d.Cluster, "ns/r-v1", d.Provider)
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
	again, err := json.Marshal(readAnswer(c))
	if err != nil || string(first) != string(again) {
		t.Errorf("%s\n%s\n%v", first, again, err)
	}
	for _, bad := range []string{"", "{", "[]", "null"} {
		c.Annotations[v1alpha1.AnswerAnnotation] = bad
		if d := cmp.Diff(providerAnswer{}, readAnswer(c)); d != "" {
			t.Errorf("%q: %s", bad, d)
		}
	}
	if d := cmp.Diff(providerAnswer{}, readAnswer(nil)); d != "" {
		t.Error(d)
	}
}

// parameterProvider is a provider that makes a variable of machines of a parameter of its own. What it sells changes by itself.
type parameterProvider struct {
	simple
	sells *string
}

func (parameterProvider) Describe() provider.Description {
	return provider.Description{Name: "local", Parameters: map[string]map[string]any{"diskType": {}}}
}

func (p parameterProvider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	m := provider.Machines{Variables: provider.Values{"disk": string(in.Cluster.Spec.Parameters["diskType"].Raw), "flavor": *p.sells}}
	return provider.Topology{ControlPlane: m, Pools: map[string]provider.Machines{"default": m}}, nil
}

// A changed parameter of the provider reaches machines. Nothing else does that the customer did not ask for.
func TestParametersOfTheProviderReachMachines(t *testing.T) {
	set := func(name, value string) func(*v1alpha1.WorkloadCluster) {
		return func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Parameters = map[string]provider.JSON{"diskType": {Raw: []byte(`"hdd"`)}}
			o.Spec.Parameters[name] = provider.JSON{Raw: []byte(value)}
		}
	}
	for name, c := range map[string]struct {
		change       func(*v1alpha1.WorkloadCluster)
		older        bool // what was asked about machines was written down by a Polder that did so otherwise
		disk, flavor string
	}{
		"nothing changes":                      {set("diskType", `"hdd"`), false, `"hdd"`, "old"},
		"nothing changes but Polder":           {set("diskType", `"hdd"`), true, `"hdd"`, "old"},
		"another parameter of the stack":       {set("certSANs", `["x"]`), false, `"hdd"`, "old"},
		"another parameter of the provider":    {set("diskType", `"ssd"`), false, `"ssd"`, "new"},
		"another parameter of it, and Polder":  {set("diskType", `"ssd"`), true, `"ssd"`, "new"},
		"the parameter of the provider is out": {func(o *v1alpha1.WorkloadCluster) { o.Spec.Parameters = nil }, false, "", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sells := healthyScope(t), "old"
			class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: v1}}
			r := newReconciler(t, class)
			p := parameterProvider{sells: &sells}
			r.Provider, s.description = guarded(t, p), p.Describe()
			for _, change := range []func(*v1alpha1.WorkloadCluster){set("diskType", `"hdd"`), c.change} {
				change(s.object)
				if err := r.askProvider(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				written := s.answer
				if sells = "new"; c.older {
					written.PartDigests = map[string]string{"/": "1", "default": "2"}
				}
				b, err := json.Marshal(written)
				if err != nil {
					t.Fatal(err)
				}
				s.cluster.Annotations = map[string]string{v1alpha1.AnswerAnnotation: string(b)}
			}
			want := provider.Values{"disk": c.disk, "flavor": c.flavor}
			for part, m := range map[string]provider.Machines{"the control plane": s.answer.Topology.ControlPlane, "the pool": s.answer.Topology.Pools["default"]} {
				if d := cmp.Diff(want, m.Variables); d != "" {
					t.Errorf("%s: %s", part, d)
				}
			}
			if again, err := digestProviderInput(s.object, s.target.Key().String(), s.description); err != nil || !cmp.Equal(again.PartDigests, s.answer.PartDigests) {
				t.Errorf("%v, %v", s.answer.PartDigests, err)
			}
		})
	}
}
