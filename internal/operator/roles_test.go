package operator

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// The operator has the rights it needs, and none that would give it others.
func TestRoles(t *testing.T) {
	granted := map[string][]string{} // verbs by group/resource
	roles, bound := map[string]bool{}, map[string]bool{}
	for _, o := range Roles() {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			roles[o.Name] = true
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
			bound[o.RoleRef.Name] = o.RoleRef.Kind == "ClusterRole" && len(o.Subjects) == 1 && o.Subjects[0].Kind == rbacv1.UserKind && o.Subjects[0].Name == User
		default:
			t.Errorf("%T", o)
		}
	}
	if len(roles) != 2 || len(bound) != 2 || !bound[User] || !bound[User+":extra"] || !roles[User] || !roles[User+":extra"] {
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
		if slices.Contains([]string{"rbac.authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io"}, strings.Split(resource, "/")[0]) {
			t.Errorf("%s: %v", resource, verbs)
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
