package topology

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

var update = flag.Bool("update", false, "write golden files anew")

// fullInput is an input with everything in it.
func fullInput() BuildInput {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "demo", UID: "5c6d"}}
	o.Spec = v1alpha1.WorkloadClusterSpec{
		Provider:     "local",
		Stack:        v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelStable},
		ControlPlane: v1alpha1.ControlPlane{Replicas: ptr.To[int32](3), MachineSelection: v1alpha1.MachineSelection{MachineType: "SCS-2V-4"}},
		Workers: []v1alpha1.WorkerPool{
			{Name: "zoned", Replicas: ptr.To[int32](5), Zones: []string{"a", "b"}, Labels: map[string]string{"team": "x", "example.org/y": "z"}},
			{
				Name: "tainted", Replicas: ptr.To[int32](0),
				Taints: []v1alpha1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "gpu", Effect: corev1.TaintEffectNoExecute}},
			},
		},
		Network: v1alpha1.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/16"}},
		Parameters: map[string]provider.JSON{
			"registryMirrors": {Raw: []byte(`[{"urlMirror":"m","hostnameUpstream":"h"}]`)}, "certSANs": {Raw: []byte(`["x"]`)},
			"costCentre": {Raw: []byte(`"4711"`)}, "ofAnotherRelease": {Raw: []byte(`1`)},
		},
		Paused: ptr.To(true),
	}
	return BuildInput{
		Cluster: o,
		Class:   client.ObjectKey{Namespace: "polder-catalogue", Name: "local-scs-1-36-v3"},
		Release: provider.Release{
			Name: "local-scs-1-36-v3", Kubernetes: "v1.36.3", Workers: []string{"default-worker", "other"},
			Variables: []provider.Variable{
				{Name: "registryMirrors", Schema: map[string]any{"type": "array", "default": []any{}}},
				{Name: "flavor", Schema: map[string]any{"type": "string", "default": "SCS-2V-4"}},
				{Name: "certSANs", Schema: map[string]any{"type": "array"}},
				{Name: "podSecurityStandard", Schema: map[string]any{"type": "string", "default": "baseline"}},
				{Name: "oidcConfig", Schema: map[string]any{"type": "object"}},
			},
		},
		Provider: provider.Description{Name: "local", Parameters: map[string]map[string]any{"costCentre": {}}},
		Topology: provider.Topology{
			Variables:    provider.Values{"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c"}},
			ControlPlane: provider.Machines{Variables: provider.Values{"flavor": "SCS-2V-4"}},
			Pools:        map[string]provider.Machines{"zoned": {Variables: provider.Values{"flavor": "SCS-4V-8", "rootDisk": 50}}, "tainted": {Class: "other"}},
			Labels:       map[string]string{"of": "provider"},
			Annotations:  map[string]string{"cost": "4711"},
		},
		PrepareRelease: "polder-catalogue/local-scs-1-36-v4",
	}
}

// bareInput is the smallest input.
func bareInput() BuildInput {
	d := fullInput()
	d.Cluster.Spec = v1alpha1.WorkloadClusterSpec{
		ControlPlane: v1alpha1.ControlPlane{Replicas: ptr.To[int32](1)}, Network: d.Cluster.Spec.Network, Workers: []v1alpha1.WorkerPool{{Name: "default"}},
	}
	d.Class.Namespace, d.PrepareRelease, d.Topology = "tenant", "", provider.Topology{}
	return d
}

// What Build makes must never change by itself: an update of Polder would replace machines. Whoever has to renew this
// file must say in the commit what that does to running clusters.
func TestBuildGolden(t *testing.T) {
	var out bytes.Buffer
	for _, c := range []struct {
		name string
		d    BuildInput
	}{{"full", fullInput()}, {"bare", bareInput()}} {
		u, digest, err := buildAndConvert(c.d)
		if err != nil {
			t.Fatal(err)
		}
		b, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("# " + c.name + " " + digest + "\n" + string(b) + "---\n")
	}
	const file = "testdata/topology.yaml"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Error(d)
	}
}

// buildAndConvert builds a Cluster and returns what is applied and its digest.
func buildAndConvert(d BuildInput) (map[string]any, string, error) {
	c, err := Build(d)
	if err != nil {
		return nil, "", err
	}
	u, digest, err := Encode(c)
	if err != nil {
		return nil, "", err
	}
	return u.Object, digest, nil
}

// Maps have no order; what is made of them has.
func TestBuildIsTheSameEveryTime(t *testing.T) {
	first, digest, err := buildAndConvert(fullInput())
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, other, err := buildAndConvert(fullInput())
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || digest != other {
			t.Fatalf("%s\n%s", want, got)
		}
	}
}

func TestBuildDoesNotChangeWhatItIsGiven(t *testing.T) {
	d := fullInput()
	if _, _, err := buildAndConvert(d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullInput(), d); diff != "" {
		t.Error(diff)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*BuildInput)
		want   string
	}{
		"a class of workers that is not there": {func(d *BuildInput) { d.Topology.Pools["tainted"] = provider.Machines{Class: "none"} },
			`pool tainted: release local-scs-1-36-v3 has no class of workers "none"`},
		"a release without workers": {func(d *BuildInput) { d.Release.Workers = nil; d.Topology.Pools = nil },
			"pool zoned: release local-scs-1-36-v3 has no class of workers"},
		"a value that is none": {func(d *BuildInput) { d.Topology.Variables["x"] = make(chan int) }, "variable x: json: unsupported type: chan int"},
		"a parameter that is no JSON": {func(d *BuildInput) { d.Cluster.Spec.Parameters["certSANs"] = provider.JSON{Raw: []byte("{")} },
			"parameter certSANs: unexpected end of JSON input"},
		"parameters that the provider sets": {func(d *BuildInput) {
			d.Topology.Variables["certSANs"], d.Topology.Variables["registryMirrors"] = []any{"mine"}, []any{}
		}, "parameters that provider local sets by itself: certSANs, registryMirrors"},
	} {
		t.Run(name, func(t *testing.T) {
			d := fullInput()
			c.change(&d)
			if _, err := Build(d); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// A parameter of the provider's own becomes no variable by itself: the provider makes one of it, of the same name or
// another.
func TestTheProvidersOwnParameterIsItsOwn(t *testing.T) {
	d := fullInput()
	d.Provider.Parameters["certSANs"], d.Topology.Variables["certSANs"] = map[string]any{}, "made of it"
	c, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(c.Spec.Topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == "certSANs" }); i < 0 ||
		string(c.Spec.Topology.Variables[i].Value.Raw) != `"made of it"` {
		t.Errorf("%+v", c.Spec.Topology.Variables)
	}
}

func TestSplitByZone(t *testing.T) {
	for name, c := range map[string]struct {
		replicas *int32
		zones    []string
		want     []ZonePool
	}{
		"no zones":              {ptr.To[int32](3), nil, []ZonePool{{"p", "", 3}}},
		"no number is one":      {nil, nil, []ZonePool{{"p", "", 1}}},
		"none":                  {ptr.To[int32](0), []string{"a", "b"}, []ZonePool{{"p-a", "a", 0}, {"p-b", "b", 0}}},
		"evenly":                {ptr.To[int32](4), []string{"a", "b"}, []ZonePool{{"p-a", "a", 2}, {"p-b", "b", 2}}},
		"the rest to the first": {ptr.To[int32](5), []string{"c", "a", "b"}, []ZonePool{{"p-c", "c", 2}, {"p-a", "a", 2}, {"p-b", "b", 1}}},
		"fewer than zones":      {ptr.To[int32](1), []string{"a", "b"}, []ZonePool{{"p-a", "a", 1}, {"p-b", "b", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, SplitByZone(v1alpha1.WorkerPool{Name: "p", Replicas: c.replicas, Zones: c.zones})); d != "" {
				t.Error(d)
			}
		})
	}
}
