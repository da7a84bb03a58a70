package capi

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
)

// aggregateLabel is the label by which providers give Cluster API's core manager rights on kinds outside the
// usual groups.
const aggregateLabel = "cluster.x-k8s.io/aggregate-to-manager"

// Roles are the rights of the three managers: Cluster API's published roles, bound to the
// users the managers act as.
func Roles(m manifests.Index) []client.Object {
	var out []client.Object
	for _, name := range slices.Sorted(maps.Keys(m.Roles)) {
		role := m.Roles[name]
		out = append(out, &role, newBinding(role.Name, name))
	}
	extra := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "capi-aggregated-manager-role"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{aggregateLabel: "true"}}},
		},
	}
	return append(out, extra, newBinding(extra.Name, core.name))
}

func newBinding(role, managerName string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "polder:" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: userName(managerName)}},
	}
}
