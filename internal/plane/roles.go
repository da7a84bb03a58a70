package plane

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/pki"
)

// ownRoles are the rights polderd itself hands out: everything to the holder of the admin
// kubeconfig, and a role to bind for whoever collects metrics.
func ownRoles() []client.Object {
	return []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: pki.AdminGroup},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: pki.AdminGroup}},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "polder:monitoring"},
			Rules: []rbacv1.PolicyRule{
				{NonResourceURLs: []string{"/metrics", "/metrics/*", "/readyz", "/readyz/*", "/livez", "/livez/*"}, Verbs: []string{
					"get",
				}},
			},
		},
	}
}

// discoveryRoles let the plane's own controllers use discovery. A built-in role lets everybody do so, but it is
// installed a second after the controllers start.
func discoveryRoles(users []string) []client.Object {
	const name = "polder:discovery"
	subjects := make([]rbacv1.Subject, len(users))
	for i, u := range users {
		subjects[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u}
	}
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{
				{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   subjects,
		},
	}
}
