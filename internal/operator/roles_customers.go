package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// ProviderRole is the role of providers that run in processes of their own; see ProviderObjects.
const ProviderRole = "polder:provider"

// CustomerRoles returns the roles for people, and that of providers. polder:customer is for those who must not read
// Secrets, among which are the keys of clusters' authorities. Kubernetes' own roles for namespaces, of which edit and
// admin read Secrets, get our kinds by aggregation.
func CustomerRoles() []client.Object {
	own := v1alpha1.GroupVersion.Group
	read, write := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete", "deletecollection"}
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	role := func(name, to string, rules ...rbacv1.PolicyRule) client.Object {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if to != "" {
			r.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + to: "true"}
		}
		return r
	}
	return []client.Object{
		role("polder:view", "view",
			rule(own, read, "workloadclusters", "kubeconfigrequests"),
			// What a request gives depends on the rights to the cluster, and admission lets nobody delete those of
			// others.
			rule(own, []string{"create", "delete"}, "kubeconfigrequests"),
			rule(csv1.GroupVersion.Group, read, "clusterstacks", "clusterstackreleases", "clusteraddons"),
			rule(clusterv1.GroupVersion.Group, read, "clusters", "machines", "machinedeployments"),
		),
		role("polder:customer", "",
			rule(own, append(append([]string{}, read...), write...), "workloadclusters", "kubeconfigrequests"),
			rule(csv1.GroupVersion.Group, read, "clusterstacks", "clusterstackreleases", "clusteraddons"),
			rule(clusterv1.GroupVersion.Group, read, "clusters", "machines", "machinedeployments"),
			rule("", []string{"get", "list", "watch"}, "events", "resourcequotas"),
			rule("events.k8s.io", []string{"get", "list", "watch"}, "events"),
		),
		role("polder:edit", "edit",
			rule(own, write, "workloadclusters", "kubeconfigrequests"),
		),
		// Everybody may know which providers there are, and what the shared catalogue has.
		role("polder:catalogue", "",
			rule(own, read, "providers"),
		),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "polder:catalogue"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "polder:catalogue"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
		},
		role(ProviderRole, "",
			rule(own, []string{"get", "list", "watch", "patch"}, "workloadclusters"),
			rule(own, []string{"get", "list", "watch", "create", "patch"}, "providers"),
			rule(own, []string{"patch"}, "workloadclusters/status", "providers/status"),
			rule(csv1.GroupVersion.Group, read, "clusterstacks", "clusterstackreleases", "clusteraddons"),
			rule(clusterv1.GroupVersion.Group, append([]string{"create", "patch", "delete"}, read...), "clusters"),
			rule(clusterv1.GroupVersion.Group, read, "clusterclasses", "machinedeployments"),
			rule("controlplane.cluster.x-k8s.io", []string{"get"}, "*"),
			rule("", read, "namespaces", "resourcequotas"),
			rule("events.k8s.io", []string{"create", "patch", "update"}, "events"),
		),
	}
}

// CatalogueRoles lets everybody read the stacks of the shared catalogue. Its namespace must exist.
func CatalogueRoles() []client.Object {
	const name = "polder:catalogue"
	return []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1alpha1.CatalogueNamespace},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{csv1.GroupVersion.Group}, Resources: []string{"clusterstacks", "clusterstackreleases"},
					Verbs: []string{"get", "list", "watch"}},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1alpha1.CatalogueNamespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
		},
	}
}
