package operator

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// serviceAccountPrefix is the prefix of the users that providers in processes of their own act as. The rest is the name
// of the provider.
const serviceAccountPrefix = "system:serviceaccount:" + v1alpha1.ProvidersNamespace + ":"

// LeasePrefix is the prefix of the lease by which processes of one provider elect their leader. The rest is the name of
// the provider.
const LeasePrefix = "polder-provider-"

// ProviderObjects returns what providers in processes of their own need: a namespace for their service accounts, which
// have the rights of ProviderRole, and leases there. A policy keeps each to objects that name it: roles cannot say
// that.
func ProviderObjects() []client.Object {
	group := rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + v1alpha1.ProvidersNamespace,
	}
	in := metav1.ObjectMeta{Name: ProviderRole, Namespace: v1alpha1.ProvidersNamespace}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProvidersNamespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ProviderRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ProviderRole},
			Subjects:   []rbacv1.Subject{group},
		},
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{
				"get", "create", "update",
			}},
			// For events of leader election.
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ProviderRole},
			Subjects: []rbacv1.Subject{group},
		},
		providerPolicy(),
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "polder-providers"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "polder-providers", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

// providerPolicy returns the policy that keeps each provider to its own objects. Both the old and the new object must
// be its own, so that it can neither take over nor hand over one.
func providerPolicy() *admissionv1.ValidatingAdmissionPolicy {
	rule := func(group, version string, resources ...string) admissionv1.NamedRuleWithOperations {
		r := admissionv1.NamedRuleWithOperations{}
		r.Operations = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
		r.Rule = admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
			Scope: ptr.To(admissionv1.AllScopes),
		}
		return r
	}
	only := func(resource, names, message string) admissionv1.Validation {
		return admissionv1.Validation{
			Expression: fmt.Sprintf("request.resource.resource != %q || [object, oldObject].all(o, o == null || %s == variables.provider)", resource, names),
			Message:    message,
		}
	}
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "polder-providers"}}
	p.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{
			MatchPolicy: ptr.To(admissionv1.Equivalent),
			ResourceRules: []admissionv1.NamedRuleWithOperations{
				rule(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "workloadclusters", "workloadclusters/status",
					"providers", "providers/status"),
				rule(clusterv1.GroupVersion.Group, clusterv1.GroupVersion.Version, "clusters"),
				rule("coordination.k8s.io", "v1", "leases"),
			},
		},
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "is-a-provider", Expression: fmt.Sprintf("request.userInfo.username.startsWith(%q)", serviceAccountPrefix)},
		},
		Variables: []admissionv1.Variable{
			{Name: "provider", Expression: fmt.Sprintf("request.userInfo.username.substring(%d)", len(serviceAccountPrefix))},
		},
		Validations: []admissionv1.Validation{
			only("workloadclusters", "(has(o.spec.provider) ? o.spec.provider : '')",
				"a provider acts on WorkloadClusters that name it, and on no others"),
			only("providers", "o.metadata.name", "a provider describes itself, and no others"),
			only("clusters", "(has(o.metadata.labels) && '"+v1alpha1.ProviderLabel+
				"' in o.metadata.labels ? o.metadata.labels['"+v1alpha1.ProviderLabel+"'] : '')",
				"a provider acts on Clusters of its own, and on no others"),
			// Whoever holds the lease of another provider keeps it from acting. Leases of other namespaces are not ours
			// to restrict.
			{
				Expression: fmt.Sprintf("request.resource.resource != 'leases' || request.namespace != %q || [object, oldObject].all(o, o == null || o.metadata.name == %q + variables.provider)", v1alpha1.ProvidersNamespace, LeasePrefix),
				Message:    "a provider holds the lease that is called after it, and no others",
			},
		},
	}
	return p
}
