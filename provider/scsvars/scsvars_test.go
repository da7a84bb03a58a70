package scsvars_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
)

func description() provider.Description {
	return provider.Description{Name: "p", MachineTypes: []v1alpha1.MachineType{
		{Name: "small", CPU: 1, MemoryMiB: 2048}, {Name: "large", Portable: "SCS-4V-8", CPU: 4, MemoryMiB: 8192},
	}}
}

// sampleCluster has a large control plane, a small pool, and one whose machines the provider chooses.
func sampleCluster() *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{}
	o.Spec.ControlPlane.MachineType = "SCS-4V-8"
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a"}, {Name: "b"}}
	o.Spec.Workers[0].Machine = &v1alpha1.MachineShape{CPU: 1, Memory: resource.MustParse("1Gi"), Disk: ptr.To(resource.MustParse("50G"))}
	return o
}

func releaseWith(names ...string) provider.Release {
	r := provider.Release{Name: "local-scs-1-36-v1"}
	for _, n := range names {
		r.Variables = append(r.Variables, provider.Variable{Name: n})
	}
	return r
}

func TestGenerationsOfVariables(t *testing.T) {
	type m = provider.Machines
	type v = provider.Values
	for name, c := range map[string]struct {
		has          []string
		controlPlane m
		pool         m
	}{
		"one variable that all override": {[]string{"flavor", "rootDisk"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small", "rootDisk": 50}}},
		"one for each": {[]string{"controlPlaneFlavor", "workerFlavor", "workerRootDisk", "controlPlaneRootDisk"},
			m{Variables: v{"controlPlaneFlavor": "large"}}, m{Variables: v{"workerFlavor": "small", "workerRootDisk": 50}}},
		"one for each, in snake case": {[]string{"controller_flavor", "worker_flavor", "worker_root_disk", "controller_root_disk"},
			m{Variables: v{"controller_flavor": "large"}}, m{Variables: v{"worker_flavor": "small", "worker_root_disk": 50}}},
		"of all, the newest": {[]string{"worker_flavor", "controller_flavor", "workerFlavor", "controlPlaneFlavor", "flavor", "worker_root_disk",
			"rootDisk"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small", "rootDisk": 50}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider.Input{Cluster: sampleCluster(), Release: releaseWith(c.has...)}
			got, err := scsvars.Topology(description(), in)
			if err != nil {
				t.Fatal(err)
			}
			want := provider.Topology{Variables: v{}, ControlPlane: c.controlPlane, Pools: map[string]m{"a": c.pool, "b": {}}}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if errs := scsvars.Validate(description(), in); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func TestADiskOfTheControlPlane(t *testing.T) {
	o := sampleCluster()
	o.Spec.ControlPlane.MachineSelection = o.Spec.Workers[0].MachineSelection
	got, err := scsvars.Topology(description(), provider.Input{
		Cluster: o, Release: releaseWith("controlPlaneFlavor", "workerFlavor", "controlPlaneRootDisk", "workerRootDisk"),
	})
	if d := cmp.Diff(provider.Values{"controlPlaneFlavor": "small", "controlPlaneRootDisk": 50}, got.ControlPlane.Variables); d != "" || err != nil {
		t.Error(d, err)
	}
}

// A disk that is asked for comes from the type itself, from the class, or is refused.
func TestDisks(t *testing.T) {
	shape := func(disk string) v1alpha1.MachineSelection {
		return v1alpha1.MachineSelection{Machine: &v1alpha1.MachineShape{CPU: 2, Memory: resource.MustParse("4Gi"), Disk: ptr.To(resource.MustParse(disk))}}
	}
	name := func(n string) v1alpha1.MachineSelection { return v1alpha1.MachineSelection{MachineType: n} }
	types := []v1alpha1.MachineType{{Name: "bare", CPU: 2, MemoryMiB: 4096}, {Name: "full", CPU: 4, MemoryMiB: 4096, DiskGB: 100}}
	refused := func(field, kind string) string {
		return "spec.controlPlane." + field + ": Forbidden: release local-scs-1-36-v1 does not let the disk of these machines be chosen, and machine type " + kind +
			" has none of its own; leave the disk out"
	}
	for title, c := range map[string]struct {
		types []v1alpha1.MachineType
		asked v1alpha1.MachineSelection
		has   []string
		want  provider.Values
		err   string
	}{
		"a shape, and the class takes it": {types, shape("50G"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "bare", "rootDisk": 50}, ""},
		"a shape, and the type has it":    {types[1:], shape("50G"), []string{"flavor"}, provider.Values{"flavor": "full"}, ""},
		"a shape, and the class decides over the type": {types[1:], shape("50G"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "full", "rootDisk": 50},
			""},
		"a shape, and nobody has it": {types, shape("50G"), []string{"flavor", "workerRootDisk"}, nil, refused("machine.disk", "bare")},
		"a name, and the class takes it": {types, name("SCS-2V-4-50"), []string{"flavor", "rootDisk"},
			provider.Values{"flavor": "bare", "rootDisk": 50}, ""},
		"a name, and the type has it":  {types[1:], name("SCS-2V-4-50"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "full"}, ""},
		"a name, and nobody has it":    {types, name("SCS-2V-4-50"), []string{"flavor"}, nil, refused("machineType", "bare")},
		"a name without a disk":        {types, name("SCS-2V-4"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "bare"}, ""},
		"a name of the provider's own": {types, name("bare"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "bare"}, ""},
		"any shape":                    {nil, shape("50G"), []string{"flavor"}, provider.Values{"flavor": "SCS-2V-4-50"}, ""},
		"any name":                     {nil, name("SCS-2V-4-50"), []string{"flavor", "rootDisk"}, provider.Values{"flavor": "SCS-2V-4-50"}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			o := &v1alpha1.WorkloadCluster{}
			o.Spec.ControlPlane.MachineSelection = c.asked
			got, err := scsvars.Topology(provider.Description{Name: "p", MachineTypes: c.types, AnyShape: c.types == nil}, provider.Input{
				Cluster: o, Release: releaseWith(c.has...),
			})
			if text := fmt.Sprint(err); c.err != "" && text != c.err || c.err == "" && err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(c.want, got.ControlPlane.Variables); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOIDC(t *testing.T) {
	least := v1alpha1.OIDC{IssuerURL: "https://i", ClientID: "c"}
	all := v1alpha1.OIDC{IssuerURL: "https://i", ClientID: "c", UsernameClaim: "u", GroupsClaim: "g", UsernamePrefix: "up", GroupsPrefix: "gp"}
	for name, c := range map[string]struct {
		oidc *v1alpha1.OIDC
		has  []string
		want provider.Values
	}{
		"none":                  {nil, []string{"oidcConfig"}, provider.Values{}},
		"none, and no variable": {nil, nil, provider.Values{}},
		"what is left out":      {&least, []string{"oidcConfig"}, provider.Values{"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c"}}},
		"all": {&all, []string{"oidcConfig"}, provider.Values{
			"oidcConfig": map[string]any{
				"issuerURL": "https://i", "clientID": "c", "usernameClaim": "u", "groupsClaim": "g", "usernamePrefix": "up", "groupsPrefix": "gp",
			},
		}},
		"all, in snake case": {&all, []string{"oidc_config"}, provider.Values{
			"oidc_config": map[string]any{
				"issuer_url": "https://i", "client_id": "c", "username_claim": "u", "groups_claim": "g", "username_prefix": "up", "groups_prefix": "gp",
			},
		}},
		"of both, the newer one": {&least, []string{"oidc_config", "oidcConfig"}, provider.Values{
			"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.WorkloadCluster{Spec: v1alpha1.WorkloadClusterSpec{OIDC: c.oidc}}
			got, err := scsvars.Topology(description(), provider.Input{Cluster: o, Release: releaseWith(c.has...)})
			if d := cmp.Diff(c.want, got.Variables); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

// All that is wrong is said at once, each at its place.
func TestRefuses(t *testing.T) {
	unknown := sampleCluster()
	unknown.Spec.ControlPlane.MachineType = "m1.large"
	unknown.Spec.Workers[0].Machine.CPU = 64
	login := &v1alpha1.WorkloadCluster{Spec: v1alpha1.WorkloadClusterSpec{OIDC: &v1alpha1.OIDC{IssuerURL: "https://i"}}}
	for name, c := range map[string]struct {
		cluster *v1alpha1.WorkloadCluster
		has     []string
		want    []string
	}{
		"machines the provider does not have": {unknown, []string{"flavor"}, []string{
			`spec.controlPlane.machineType: Invalid value: "m1.large": p has no machine type "m1.large"; choose from small, large, or write a portable name, for example SCS-2V-4`,
			"spec.workers[0].machine: Invalid value: p has no machine with 64 CPUs, 1024 MiB of memory and 50 GB of disk; its largest is large with 4 CPUs and 8192 MiB of memory",
		}},
		"a class without variables": {sampleCluster(), nil, []string{
			"spec.controlPlane.machineType: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
			"spec.workers[0].machine: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
		}},
		"a class with variables for workers only": {sampleCluster(), []string{"workerFlavor", "workerRootDisk"}, []string{
			"spec.controlPlane.machineType: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
		}},
		"a class that lets nobody log in": {login, []string{"flavor"}, []string{
			"spec.oidc: Forbidden: release local-scs-1-36-v1 has no way to let users of an OpenID Connect issuer log in",
		}},
		"nothing is asked of a class without variables": {&v1alpha1.WorkloadCluster{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider.Input{Cluster: c.cluster, Release: releaseWith(c.has...)}
			var got []string
			for _, e := range scsvars.Validate(description(), in) {
				got = append(got, e.Error())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if _, err := scsvars.Topology(description(), in); (err != nil) != (len(c.want) > 0) {
				t.Errorf("Topology: %v", err)
			}
		})
	}
}
