package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// AggregateLabel on a ClusterRole, with the value "true", gives its rights to the operator: for kinds of other
// providers that releases bring into the plane.
const AggregateLabel = "polder.dev/aggregate-to-operator"

// Roles returns the operator's rights: its own kinds, the kinds that releases bring into the plane, what it must read,
// and nothing else.
func Roles() []client.Object {
	const extra = User + ":extra"
	own := csv1.GroupVersion.Group
	read := []string{"get", "list", "watch"}
	cache := []string{"list", "watch"} // what is only ever read from a cache is not got
	write := append([]string{"create", "patch", "delete"}, read...)
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: User},
			Rules: []rbacv1.PolicyRule{
				rule(own, cache, "clusterstacks"),
				rule(own, write, "clusterstackreleases"),
				rule(own, []string{"get", "list", "watch", "create", "patch"}, "clusteraddons"),
				rule(own, []string{"patch"}, "clusterstacks/status", "clusterstackreleases/status", "clusteraddons/status"),
				rule(clusterv1.GroupVersion.Group, append([]string{"create", "patch", "delete"}, read...), "clusters"),
				rule(clusterv1.GroupVersion.Group, cache, "machinedeployments"),
				rule(v1alpha1.GroupVersion.Group, []string{"get", "list", "watch", "patch"}, "workloadclusters"),
				rule(v1alpha1.GroupVersion.Group, []string{"get", "list", "watch", "create"}, "providers"),
				rule(v1alpha1.GroupVersion.Group, []string{"get", "list", "watch", "delete"}, "kubeconfigrequests"),
				rule(v1alpha1.GroupVersion.Group, []string{"patch"}, "workloadclusters/status", "providers/status",
					"kubeconfigrequests/status"),
				rule("authorization.k8s.io", []string{"create"}, "subjectaccessreviews"),
				rule(clusterv1.GroupVersion.Group, write, "clusterclasses"),
				rule("bootstrap.cluster.x-k8s.io", write, "kubeadmconfigtemplates"),
				rule("controlplane.cluster.x-k8s.io", write, "kubeadmcontrolplanetemplates"),
				rule("controlplane.cluster.x-k8s.io", []string{"get"}, "kubeadmcontrolplanes"),
				rule("infrastructure.cluster.x-k8s.io", write, "localclustertemplates", "localmachinetemplates"),
				rule("infrastructure.cluster.x-k8s.io", []string{"get"}, "localclusters"),
				// To tell whether an object went with its kind.
				rule("apiextensions.k8s.io", []string{"get", "list"}, "customresourcedefinitions"),
				rule("", cache, "namespaces"),
				rule("", append([]string{"create"}, cache...), "resourcequotas"),
				rule(v1alpha1.GroupVersion.Group, cache, "tenants"),
				rule("", cache, "serviceaccounts"),
				rule(rbacv1.GroupName, cache, "rolebindings", "clusterroles", "clusterrolebindings"),
				rule("", []string{"get", "create", "update"}, "secrets"),
				rule("events.k8s.io", []string{"create", "patch"}, "events"),
			},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: extra},
			AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{AggregateLabel: "true"}}},
			},
		},
		binding(User, User),
		binding(extra, User),
		tenantRole(),
		binding(TenantUser, TenantUser),
	}
}

// tenantRole returns the rights that Tenants are given their namespaces, quotas and rights with. Nobody can give rights
// that he does not have: to a Tenant it has those that its members get, and the roles in namespaces it may bind. Of
// what is there already it changes only what it finds by name.
func tenantRole() client.Object {
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: TenantUser},
		Rules: []rbacv1.PolicyRule{
			rule(v1alpha1.GroupVersion.Group, []string{"get", "update", "patch"}, "tenants"),
			rule(v1alpha1.GroupVersion.Group, []string{"patch"}, "tenants/status"),
			{NonResourceURLs: []string{planepath.Audit + "*", planepath.Machines + "*"}, Verbs: []string{"get"}},
			rule("", []string{"get", "create", "patch"}, "namespaces"),
			rule("", []string{"get", "create", "update"}, "resourcequotas"),
			rule("", []string{"get", "create", "update", "delete"}, "serviceaccounts"),
			rule(rbacv1.GroupName, []string{"get", "create", "update"}, "rolebindings", "clusterroles", "clusterrolebindings"),
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"},
				ResourceNames: tenancy.RoleNames()},
		},
	}
}

// binding binds a ClusterRole to a user of the operator.
func binding(role, user string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}
