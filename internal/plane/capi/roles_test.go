package capi

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
)

// TestRoles checks the rights that Cluster API publishes: none of its managers may do everything.
func TestRoles(t *testing.T) {
	m, err := manifests.Load()
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]int{}
	for _, o := range Roles(m) {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			for _, r := range o.Rules {
				for i, g := range r.APIGroups {
					if g == "*" || r.Verbs[0] == "*" {
						t.Errorf("%s has all of group %d %q", o.Name, i, g)
					}
				}
			}
		case *rbacv1.ClusterRoleBinding:
			bound[o.Subjects[0].Name]++
		}
	}
	for _, k := range []managerKind{core, bootstrap, controlPlane} {
		if bound[userName(k.name)] == 0 {
			t.Errorf("%s has no role", k.name)
		}
	}
}

func TestManifestsAreComplete(t *testing.T) {
	m, err := manifests.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CRDs) < 17 || len(m.Mutating) != 3 || len(m.Validating) != 3 || m.ClusterAPI == "" {
		t.Errorf("%d CRDs, %d and %d webhook configurations, Cluster API %q", len(m.CRDs), len(m.Mutating), len(m.Validating), m.ClusterAPI)
	}
	contract := 0
	for _, c := range m.CRDs {
		d, err := c.Definition()
		if err != nil || d.Name != c.Name {
			t.Errorf("%s: %v", c.Name, err)
		}
		if d.Labels["cluster.x-k8s.io/v1beta2"] != "" {
			contract++
		}
	}
	if contract != 4 {
		t.Errorf("%d CRDs carry contract labels, want those of the two kubeadm providers: 4", contract)
	}
}
