package scsvars_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/contract"
	"github.com/polder-kaas/polder/provider/scsvars"
)

func description() contract.Description {
	return contract.Description{Name: "p", MachineTypes: []v1alpha1.MachineType{
		{Name: "small", CPU: 1, MemoryMiB: 2048}, {Name: "large", Portable: "SCS-4V-8", CPU: 4, MemoryMiB: 8192},
	}}
}

// asking is for a large control plane, a small pool, and one that the provider chooses.
func asking() *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{}
	o.Spec.ControlPlane.MachineType = "SCS-4V-8"
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a"}, {Name: "b"}}
	o.Spec.Workers[0].Machine = &v1alpha1.MachineShape{CPU: 1, Memory: resource.MustParse("1Gi"), Disk: ptr.To(resource.MustParse("50G"))}
	return o
}

func having(names ...string) contract.Release {
	r := contract.Release{Name: "local-scs-1-36-v1"}
	for _, n := range names {
		r.Variables = append(r.Variables, contract.Variable{Name: n})
	}
	return r
}

func TestGenerationsOfVariables(t *testing.T) {
	type m = contract.Machines
	type v = contract.Values
	for name, c := range map[string]struct {
		has          []string
		controlPlane m
		pool         m
	}{
		"one variable that all override":    {[]string{"flavor", "rootDisk"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small", "rootDisk": 50}}},
		"one for each":                      {[]string{"controlPlaneFlavor", "workerFlavor", "workerRootDisk", "controlPlaneRootDisk"}, m{Variables: v{"controlPlaneFlavor": "large"}}, m{Variables: v{"workerFlavor": "small", "workerRootDisk": 50}}},
		"one for each, in snake case":       {[]string{"controller_flavor", "worker_flavor", "worker_root_disk", "controller_root_disk"}, m{Variables: v{"controller_flavor": "large"}}, m{Variables: v{"worker_flavor": "small", "worker_root_disk": 50}}},
		"of all, the newest":                {[]string{"worker_flavor", "controller_flavor", "workerFlavor", "controlPlaneFlavor", "flavor"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small"}}},
		"a disk that cannot be told":        {[]string{"flavor"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small"}}},
		"a disk of another part is no disk": {[]string{"flavor", "controlPlaneRootDisk"}, m{Variables: v{"flavor": "large"}}, m{Variables: v{"flavor": "small"}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := contract.Input{Cluster: asking(), Release: having(c.has...)}
			got, err := scsvars.Topology(description(), in)
			if err != nil {
				t.Fatal(err)
			}
			want := contract.Topology{Variables: v{}, ControlPlane: c.controlPlane, Pools: map[string]m{"a": c.pool, "b": {}}}
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
	o := asking()
	o.Spec.ControlPlane.MachineSelection = o.Spec.Workers[0].MachineSelection
	got, err := scsvars.Topology(description(), contract.Input{Cluster: o, Release: having("controlPlaneFlavor", "workerFlavor", "controlPlaneRootDisk")})
	if d := cmp.Diff(contract.Values{"controlPlaneFlavor": "small", "controlPlaneRootDisk": 50}, got.ControlPlane.Variables); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestOIDC(t *testing.T) {
	least := v1alpha1.OIDC{IssuerURL: "https://i", ClientID: "c"}
	all := v1alpha1.OIDC{IssuerURL: "https://i", ClientID: "c", UsernameClaim: "u", GroupsClaim: "g", UsernamePrefix: "up", GroupsPrefix: "gp"}
	for name, c := range map[string]struct {
		oidc *v1alpha1.OIDC
		has  []string
		want contract.Values
	}{
		"none":                   {nil, []string{"oidcConfig"}, contract.Values{}},
		"none, and no variable":  {nil, nil, contract.Values{}},
		"what is left out":       {&least, []string{"oidcConfig"}, contract.Values{"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c"}}},
		"all":                    {&all, []string{"oidcConfig"}, contract.Values{"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c", "usernameClaim": "u", "groupsClaim": "g", "usernamePrefix": "up", "groupsPrefix": "gp"}}},
		"all, in snake case":     {&all, []string{"oidc_config"}, contract.Values{"oidc_config": map[string]any{"issuer_url": "https://i", "client_id": "c", "username_claim": "u", "groups_claim": "g", "username_prefix": "up", "groups_prefix": "gp"}}},
		"of both, the newer one": {&least, []string{"oidc_config", "oidcConfig"}, contract.Values{"oidcConfig": map[string]any{"issuerURL": "https://i", "clientID": "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.WorkloadCluster{Spec: v1alpha1.WorkloadClusterSpec{OIDC: c.oidc}}
			got, err := scsvars.Topology(description(), contract.Input{Cluster: o, Release: having(c.has...)})
			if d := cmp.Diff(c.want, got.Variables); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

// All that is wrong is said at once, each at its place.
func TestRefuses(t *testing.T) {
	unknown := asking()
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
		"a class without variables": {asking(), nil, []string{
			"spec.controlPlane.machineType: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
			"spec.workers[0].machine: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
		}},
		"a class with variables for workers only": {asking(), []string{"workerFlavor"}, []string{
			"spec.controlPlane.machineType: Forbidden: release local-scs-1-36-v1 does not let the size of these machines be chosen",
		}},
		"a class that lets nobody log in": {login, []string{"flavor"}, []string{
			"spec.oidc: Forbidden: release local-scs-1-36-v1 has no way to let users of an OpenID Connect issuer log in",
		}},
		"nothing is asked of a class without variables": {&v1alpha1.WorkloadCluster{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := contract.Input{Cluster: c.cluster, Release: having(c.has...)}
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
