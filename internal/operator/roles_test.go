package operator

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// The operator has the rights it needs, and none that would give it others.
func TestRoles(t *testing.T) {
	granted := map[string][]string{} // verbs by group/resource
	roles, bound := map[string]bool{}, map[string]bool{}
	for _, o := range Roles() {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			roles[o.Name] = true
			if o.Name == TenantUser {
				continue // TestTenantRole
			}
			for _, r := range o.Rules {
				if len(r.NonResourceURLs) > 0 {
					t.Errorf("%s may ask for %v", o.Name, r.NonResourceURLs)
				}
				for _, word := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
					if word == "*" {
						t.Errorf("%s: %+v", o.Name, r)
					}
				}
				for _, resource := range r.Resources {
					granted[r.APIGroups[0]+"/"+resource] = append(granted[r.APIGroups[0]+"/"+resource], r.Verbs...)
				}
			}
		case *rbacv1.ClusterRoleBinding:
			bound[o.RoleRef.Name] = o.RoleRef.Kind == "ClusterRole" && len(o.Subjects) == 1 && o.Subjects[0].Kind == rbacv1.UserKind && o.Subjects[0].Name == strings.TrimSuffix(o.RoleRef.Name, ":extra")
		default:
			t.Errorf("%T", o)
		}
	}
	if len(roles) != 3 || len(bound) != 3 || !bound[User] || !bound[TenantUser] || !bound[User+":extra"] || !roles[User] || !roles[User+":extra"] {
		t.Errorf("%v, %v", roles, bound)
	}
	for resource, verbs := range map[string][]string{
		"/secrets":                  {"get", "create", "update"}, // it knows their names, so it lists none
		"/namespaces":               {"list", "watch"},
		"/resourcequotas":           {"create", "list", "watch"}, // those that people have changed stay theirs
		"cluster.x-k8s.io/clusters": {"create", "patch", "delete", "get", "list", "watch"},

		"apiextensions.k8s.io/customresourcedefinitions": {"get", "list"},

		v1alpha1.GroupVersion.Group + "/workloadclusters":   {"get", "list", "watch", "patch"},
		v1alpha1.GroupVersion.Group + "/kubeconfigrequests": {"get", "list", "watch", "delete"},
		csv1.GroupVersion.Group + "/clusterstacks":          {"list", "watch"},
		csv1.GroupVersion.Group + "/clusterstacks/status":   {"patch"},
		csv1.GroupVersion.Group + "/clusteraddons":          {"get", "list", "watch", "create", "patch"},
	} {
		if !slices.Equal(granted[resource], verbs) {
			t.Errorf("%s: %v, want %v", resource, granted[resource], verbs)
		}
	}
	for resource, verbs := range granted {
		for _, verb := range []string{"impersonate", "escalate", "bind", "deletecollection"} {
			if slices.Contains(verbs, verb) {
				t.Errorf("%s: %v", resource, verbs)
			}
		}
		if reads := slices.Equal(verbs, []string{"list", "watch"}); reads && strings.HasPrefix(resource, "rbac.") {
			continue
		}
		if slices.Contains([]string{"rbac.authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io"}, strings.Split(resource, "/")[0]) {
			t.Errorf("%s: %v", resource, verbs)
		}
	}
}

// Whoever gives rights to people has no more himself than they get, and binds no other role.
func TestTenantRole(t *testing.T) {
	i := slices.IndexFunc(Roles(), func(o client.Object) bool { return o.GetName() == TenantUser })
	r, ok := Roles()[i].(*rbacv1.ClusterRole)
	if !ok {
		t.Fatalf("%T", Roles()[i])
	}
	for _, rule := range r.Rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if slices.Contains([]string{"*", "secrets", "serviceaccounts/token", "impersonate", "escalate", "deletecollection", "list"}, word) {
				t.Errorf("%+v", rule)
			}
		}
		if slices.Contains(rule.Verbs, "bind") && (len(rule.Verbs) > 1 || !slices.Equal(rule.ResourceNames, tenancy.RoleNames())) {
			t.Errorf("%+v", rule)
		}
	}
}

func TestExtraRightsAreAskedForByLabel(t *testing.T) {
	for _, o := range Roles() {
		r, ok := o.(*rbacv1.ClusterRole)
		if !ok || r.Name != User+":extra" {
			continue
		}
		if r.AggregationRule == nil || len(r.AggregationRule.ClusterRoleSelectors) != 1 ||
			r.AggregationRule.ClusterRoleSelectors[0].MatchLabels[AggregateLabel] != "true" || len(r.Rules) != 0 {
			t.Errorf("%+v", r)
		}
	}
}
