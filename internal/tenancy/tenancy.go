// Package tenancy knows what a Tenant is made of in the plane: its namespace, the rights of its members and robots, and
// which Tenant a namespace is for. Rights are those of Kubernetes' RBAC alone.
package tenancy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/quota"
)

// roleNames are the roles in a tenant's namespace.
var roleNames = map[v1alpha1.TenantRole]string{
	v1alpha1.TenantAdmin:  "polder:tenant-admin",
	v1alpha1.TenantEditor: "polder:tenant-editor",
	v1alpha1.TenantViewer: "polder:tenant-viewer",
}

// RoleNames returns the names of the roles that tenants' namespaces bind.
func RoleNames() []string {
	return []string{roleNames[v1alpha1.TenantAdmin], roleNames[v1alpha1.TenantEditor], roleNames[v1alpha1.TenantViewer]}
}

// Roles returns the roles that members and robots get in their tenant's namespace, whatever they are there: kinds of
// Polder alone. Secrets are not among them, since the keys of clusters are there, nor kinds of Cluster API, by which
// machines could be given anything to run.
func Roles() []client.Object {
	read := []string{"get", "list", "watch"}
	own := v1alpha1.GroupVersion.Group
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	viewer := []rbacv1.PolicyRule{
		rule(own, read, "workloadclusters"),
		// What a request gives depends on the rights to the cluster, and admission lets nobody delete those of others.
		rule(own, append([]string{"create", "delete"}, read...), "kubeconfigrequests"),
		rule(csv1.GroupVersion.Group, read, "clusterstacks", "clusterstackreleases", "clusteraddons"),
		rule("", read, "events", "resourcequotas"),
		rule("events.k8s.io", read, "events"),
	}
	editor := append(slices.Clone(viewer),
		rule(own, []string{"create", "update", "patch", "delete", "deletecollection"}, "workloadclusters"))
	admin := append(slices.Clone(editor),
		rule("", []string{"list"}, "serviceaccounts"),
		rule("", []string{"create"}, "serviceaccounts/token"))
	var out []client.Object
	for role, rules := range map[v1alpha1.TenantRole][]rbacv1.PolicyRule{
		v1alpha1.TenantViewer: viewer, v1alpha1.TenantEditor: editor, v1alpha1.TenantAdmin: admin,
	} {
		out = append(out, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleNames[role]}, Rules: rules})
	}
	slices.SortFunc(out, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// IsReserved reports whether the plane itself needs a namespace of this name, or may do so later.
func IsReserved(namespace string) bool {
	return namespace == metav1.NamespaceDefault || strings.HasPrefix(namespace, "kube-") ||
		strings.HasPrefix(namespace, "polder-")
}

// NewNamespace returns the namespace of a tenant. It does not go with the Tenant.
func NewNamespace(t *v1alpha1.Tenant) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.NamespaceName(), Labels: map[string]string{
		v1alpha1.TenantLabel: t.Name, v1alpha1.CustomerLabel: t.Name, v1alpha1.QuotaLabel: v1alpha1.QuotaOwn,
	}, Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: string(t.UID)}}}
	if t.IsDedicated() {
		ns.Labels[v1alpha1.PlaneLabel] = string(v1alpha1.DedicatedPlane)
		ns.Finalizers = []string{v1alpha1.PlaneFinalizer}
	}
	return ns
}

// Objects returns what a tenant has beside its namespace. All but the quota goes with the Tenant: the quota holds for
// the clusters that stay.
func Objects(t *v1alpha1.Tenant) []client.Object {
	var out []client.Object
	if !t.IsDedicated() { // what is in another plane is counted there
		q := quota.ForTenant(t)
		q.Labels = map[string]string{v1alpha1.TenantLabel: t.Name}
		out = append(out, q)
	}
	for _, r := range t.Spec.Robots {
		name := v1alpha1.RobotAccountPrefix + r.Name
		out = append(out, &corev1.ServiceAccount{ObjectMeta: newMeta(t, t.NamespaceName(), name)})
	}
	for _, role := range []v1alpha1.TenantRole{v1alpha1.TenantAdmin, v1alpha1.TenantEditor, v1alpha1.TenantViewer} {
		name := roleNames[role]
		out = append(out, &rbacv1.RoleBinding{
			ObjectMeta: newMeta(t, t.NamespaceName(), name),
			RoleRef:    newRoleRef(name),
			Subjects:   subjects(t, role),
		})
	}
	return append(append(out, ownObjectRole(t, "member", []string{"get"},
		rbacv1.PolicyRule{NonResourceURLs: []string{planepath.Machines + t.Name + "/*"}, Verbs: []string{"get"}})...),
		ownObjectRole(t, "admin", []string{"update", "patch"},
			rbacv1.PolicyRule{NonResourceURLs: []string{planepath.Audit + t.Name}, Verbs: []string{"get"}})...)
}

// ownObjectRole returns a role for the Tenant itself: all members read it, and admins write it as far as admission lets
// them.
func ownObjectRole(t *v1alpha1.Tenant, name string, verbs []string, further ...rbacv1.PolicyRule) []client.Object {
	role := &rbacv1.ClusterRole{
		ObjectMeta: newMeta(t, "", "polder:tenant:"+t.Name+":"+name),
		Rules: append([]rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenants"},
			ResourceNames: []string{t.Name}, Verbs: verbs,
		}}, further...),
	}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: newMeta(t, "", role.Name), RoleRef: newRoleRef(role.Name)}
	b.Subjects = subjects(t, v1alpha1.TenantAdmin)
	if name == "member" {
		b.Subjects = slices.Concat(b.Subjects, subjects(t, v1alpha1.TenantEditor), subjects(t, v1alpha1.TenantViewer))
	}
	return []client.Object{role, b}
}

// newMeta returns the metadata of what goes with a Tenant.
func newMeta(t *v1alpha1.Tenant, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.TenantLabel: t.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t, v1alpha1.GroupVersion.WithKind("Tenant"))},
	}
}

func newRoleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// subjects returns the members and robots with a role, in the order of the spec.
func subjects(t *v1alpha1.Tenant, role v1alpha1.TenantRole) (out []rbacv1.Subject) {
	for _, m := range t.Spec.Members {
		if m.Role == role {
			out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: string(m.Kind), Name: m.Name})
		}
	}
	for _, r := range t.Spec.Robots {
		if r.Role == role {
			out = append(out, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: t.NamespaceName(), Name: v1alpha1.RobotAccountPrefix + r.Name,
			})
		}
	}
	return out
}

// Of returns the Tenant that a namespace is for; nil if it is for none.
func Of(ctx context.Context, c client.Reader, namespace string) (*v1alpha1.Tenant, error) {
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return nil, err
	}
	name := ns.Labels[v1alpha1.TenantLabel]
	if name == "" {
		return nil, nil
	}
	t := &v1alpha1.Tenant{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, t)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // it was deleted, and its namespace stays
	case err != nil:
		return nil, fmt.Errorf("reading tenant %s: %w", name, err)
	case t.NamespaceName() != namespace || ns.Annotations[v1alpha1.TenantUIDAnnotation] != string(t.UID):
		return nil, nil
	}
	return t, nil
}

// maxNamed is how many clusters a sentence names.
const maxNamed = 5

// DescribeRemains says in one sentence what is left when a tenant is deleted.
func DescribeRemains(namespace string, clusters []v1alpha1.WorkloadCluster) string {
	if len(clusters) == 0 {
		return fmt.Sprintf("namespace %s stays; it has no clusters: delete it with: kubectl delete namespace %s", namespace,
			namespace)
	}
	var names []string
	for i := range clusters {
		names = append(names, clusters[i].Name)
	}
	slices.Sort(names)
	count := fmt.Sprintf("%d clusters", len(names))
	if len(names) == 1 {
		count = "1 cluster"
	}
	if len(names) > maxNamed {
		names = append(names[:maxNamed:maxNamed], "and more")
	}
	return fmt.Sprintf("namespace %s stays, with %s that nobody of the tenant can reach any more: %s; delete all of it with: kubectl delete namespace %s",
		namespace, count, strings.Join(names, ", "), namespace)
}
