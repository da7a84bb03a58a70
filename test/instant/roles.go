package instant

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels by which rights are added to those of others.
const (
	aggregateToClusterAPI = "cluster.x-k8s.io/aggregate-to-manager"
	aggregateToOperator   = "polder.dev/aggregate-to-operator"
)

// Roles let Cluster API's core manager use all of the provider's kinds, and the stack operator bring templates of
// them into the plane and read what clusters refer to.
func (p *Provider) Roles() []client.Object {
	read := []string{"get", "list", "watch"}
	write := append([]string{"create", "update", "patch", "delete"}, read...)
	var all, templates []string
	for _, k := range kinds {
		all = append(all, k.plural(), k.plural()+"/status", k.template().plural())
		templates = append(templates, k.template().plural())
	}
	rule := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{groupVersion.Group}, Resources: resources, Verbs: verbs}
	}
	return []client.Object{
		newRole("polder:provider:instant:cluster-api", aggregateToClusterAPI, rule(write, all...)),
		newRole("polder:provider:instant:operator", aggregateToOperator, rule(write, templates...),
			rule([]string{"get"}, clusterKind.plural(), controlPlaneKind.plural())),
	}
}

func newRole(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}, Rules: rules}
}
