package operator

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// rights returns the verbs of rules by group/resource.
func rights(t *testing.T, rules []rbacv1.PolicyRule) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, r := range rules {
		if len(r.APIGroups) != 1 || len(r.NonResourceURLs) > 0 || slices.Contains(slices.Concat(r.APIGroups, r.Verbs), "*") {
			t.Errorf("%+v", r)
		}
		for _, resource := range r.Resources {
			out[r.APIGroups[0]+"/"+resource] = append(out[r.APIGroups[0]+"/"+resource], r.Verbs...)
		}
	}
	return out
}

func roles(t *testing.T, objects []client.Object) map[string]*rbacv1.ClusterRole {
	t.Helper()
	out := map[string]*rbacv1.ClusterRole{}
	for _, o := range objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok {
			out[r.Name] = r
		}
	}
	return out
}

var reading = []string{"get", "list", "watch"}

// Whoever may view a namespace sees its clusters, and whoever may edit it changes them. Roles with more rights get
// nothing on top, and nobody may write what is the operator's.
func TestRolesOfCustomers(t *testing.T) {
	all := roles(t, CustomerRoles())
	writing := []string{"create", "update", "patch", "delete", "deletecollection"}
	for name, c := range map[string]struct {
		labels map[string]string
		want   map[string][]string
	}{
		"polder:view": {map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}, map[string][]string{
			"polder.dev/workloadclusters": reading, "polder.dev/kubeconfigrequests": append(slices.Clone(reading), "create", "delete"),
			"clusterstack.x-k8s.io/clusterstacks": reading, "clusterstack.x-k8s.io/clusterstackreleases": reading, "clusterstack.x-k8s.io/clusteraddons": reading,
			"cluster.x-k8s.io/clusters": reading, "cluster.x-k8s.io/machines": reading, "cluster.x-k8s.io/machinedeployments": reading,
		}},
		"polder:customer": {nil, map[string][]string{ // and no Secrets
			"polder.dev/workloadclusters": slices.Concat(reading, writing), "polder.dev/kubeconfigrequests": slices.Concat(reading, writing),
			"clusterstack.x-k8s.io/clusterstacks": reading, "clusterstack.x-k8s.io/clusterstackreleases": reading, "clusterstack.x-k8s.io/clusteraddons": reading,
			"cluster.x-k8s.io/clusters": reading, "cluster.x-k8s.io/machines": reading, "cluster.x-k8s.io/machinedeployments": reading,
			"/events": reading, "events.k8s.io/events": reading, "/resourcequotas": reading,
		}},
		"polder:edit": {map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}, map[string][]string{
			"polder.dev/workloadclusters": writing, "polder.dev/kubeconfigrequests": writing,
		}},
		"polder:catalogue": {nil, map[string][]string{"polder.dev/providers": reading}},
	} {
		t.Run(name, func(t *testing.T) {
			if all[name] == nil {
				t.Fatal("it is not there")
			}
			if d := cmp.Diff(c.want, rights(t, all[name].Rules)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.labels, all[name].Labels); d != "" {
				t.Error(d)
			}
		})
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"polder:catalogue", "polder:customer", "polder:edit", ProviderRole, "polder:view"}) {
		t.Errorf("%v", got)
	}
}

// A provider in a process of its own writes only its own objects, and cannot extend its rights.
func TestRoleOfProviders(t *testing.T) {
	role := roles(t, CustomerRoles())[ProviderRole]
	if role == nil || len(role.Labels) > 0 {
		t.Fatalf("%+v", role)
	}
	want := map[string][]string{ // all verbs beyond reading
		"polder.dev/workloadclusters": {"patch"}, "polder.dev/workloadclusters/status": {"patch"},
		"polder.dev/providers": {"create", "patch"}, "polder.dev/providers/status": {"patch"},
		"cluster.x-k8s.io/clusters": {"create", "patch", "delete"},
		"events.k8s.io/events":      {"create", "patch", "update"},
	}
	got := map[string][]string{}
	for resource, verbs := range rights(t, role.Rules) {
		if more := slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return slices.Contains(reading, v) }); len(more) > 0 {
			got[resource] = more
		}
		group, name, _ := strings.Cut(resource, "/")
		if group == "" && name != "namespaces" && name != "resourcequotas" || group == "rbac.authorization.k8s.io" || name == "*" && !slices.Equal(verbs, []string{"get"}) {
			t.Errorf("%s: %v", resource, verbs)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Everybody may only read, and the role of providers is bound to nobody here.
func TestWhoIsBound(t *testing.T) {
	everybody := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}
	bound := 0
	for _, o := range slices.Concat(CustomerRoles(), CatalogueRoles()) {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			bound++
			if d := cmp.Diff(everybody, o.Subjects); d != "" ||
				o.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "polder:catalogue"}) {
				t.Errorf("%+v", o)
			}
		case *rbacv1.RoleBinding:
			bound++
			if d := cmp.Diff(everybody, o.Subjects); d != "" || o.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "polder:catalogue"}) ||
				o.Namespace != v1alpha1.CatalogueNamespace {
				t.Errorf("%+v", o)
			}
		case *rbacv1.Role:
			want := map[string][]string{"clusterstack.x-k8s.io/clusterstacks": reading, "clusterstack.x-k8s.io/clusterstackreleases": reading}
			if d := cmp.Diff(want, rights(t, o.Rules)); d != "" || o.Namespace != v1alpha1.CatalogueNamespace || o.Name != "polder:catalogue" {
				t.Errorf("%s: %s", client.ObjectKeyFromObject(o), d)
			}
		}
	}
	if bound != 2 {
		t.Errorf("%d bindings", bound)
	}
}
