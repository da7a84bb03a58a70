package operator

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// reference is a field by which an object can name another one in a namespace that it chooses.
type reference struct {
	group, version, resource string
	field                    []string // its path; below it are name and namespace
}

// references are all such fields that can be written here. A test on a running plane compares them with the schemas of
// all kinds. Of other fields that look alike, some have no namespace, some are for administrators alone, and some are
// about the workload cluster.
var references = []reference{
	{clusterv1.GroupVersion.Group, clusterv1.GroupVersion.Version, "clusters", []string{"spec", "topology", "classRef"}},
	{csv1.GroupVersion.Group, csv1.GroupVersion.Version, "clusteraddons", []string{"spec", "clusterRef"}},
	{csv1.GroupVersion.Group, csv1.GroupVersion.Version, "clusterstacks", []string{"spec", "providerRef"}},
	{csv1.GroupVersion.Group, csv1.GroupVersion.Version, "clusterstackreleases", []string{"spec", "providerRef"}},
}

// CustomerPolicies returns the policies for namespaces of customers. They hold for whoever has his rights only there;
// who may create the same kind in all namespaces is the platform operator, or a part of the plane.
func CustomerPolicies() []client.Object {
	var out []client.Object
	for _, p := range []*admissionv1.ValidatingAdmissionPolicy{
		referencePolicy(), clusterSecretPolicy(), robotTokenPolicy(), planePolicy(),
	} {
		out = append(out, p, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: p.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		})
	}
	return out
}

// referencePolicy returns the policy that lets no object refer to another namespace. A reference that the plane wrote,
// such as that of a Cluster to a class of the catalogue, does not keep others from changing the rest of the object.
func referencePolicy() *admissionv1.ValidatingAdmissionPolicy {
	p := newCustomerPolicy("polder-customer-references")
	for _, r := range references {
		p.Spec.MatchConstraints.ResourceRules = append(p.Spec.MatchConstraints.ResourceRules,
			createOrUpdate(r.group, r.version, r.resource))
		there, ref := celHas("object", r.field), "object."+strings.Join(r.field, ".")
		was, old := celHas("oldObject", r.field), "oldObject."+strings.Join(r.field, ".")
		field := strings.Join(r.field, ".") + ".namespace"
		p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{
			Expression: fmt.Sprintf("request.resource.resource != %q || !(%s && has(%s.namespace)) || %s.namespace in ['', request.namespace] || oldObject != null && %s && %s == %s || variables.trusted",
				r.resource, there, ref, ref, was, old, ref),
			Message: fmt.Sprintf("%s: objects in the namespace of a customer refer to no other namespace; leave it out", field),
			Reason:  ptr.To(metav1.StatusReasonForbidden),
		})
	}
	p.Spec.Variables = []admissionv1.Variable{{Name: "trusted",
		Expression: mayCreateEverywhere("request.resource.group", "request.resource.resource")}}
	return p
}

// clusterSecretPolicy returns the policy that lets nobody write the Secrets by which Cluster API makes and reaches
// clusters. Bootstrap data among them are files of machines: whoever may write them chooses what a machine runs.
func clusterSecretPolicy() *admissionv1.ValidatingAdmissionPolicy {
	p := newCustomerPolicy("polder-customer-cluster-secrets")
	p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{createOrUpdate("", "v1", "secrets")}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "named", Expression: "has(object.data) && (object.metadata.name.endsWith('-kubeconfig') && 'value' in object.data || object.metadata.name.matches('-(ca|etcd|sa|proxy|apiserver-etcd-client)$') && 'tls.crt' in object.data)"},
		{Name: "typed", Expression: fmt.Sprintf("has(object.type) && object.type == %q", clusterv1.ClusterSecretType)},
		{Name: "trusted", Expression: mayCreateEverywhere("''", "'secrets'")},
	}
	p.Spec.Validations = []admissionv1.Validation{{
		Expression: "!(variables.named || variables.typed) || variables.trusted",
		Message:    "Secrets that clusters are made of, by name or by type, are written by the plane alone in the namespace of a customer; give yours another name",
		Reason:     ptr.To(metav1.StatusReasonForbidden),
	}}
	return p
}

// maxTokenSeconds is how long a token of a robot may be valid: 90 days.
const maxTokenSeconds = 90 * 24 * 60 * 60

// robotTokenPolicy returns the policy that gives tokens for robots only, and none that nobody has to renew. An account
// that the platform operator has made in a customer's namespace, with whatever rights, is not the customer's to use.
func robotTokenPolicy() *admissionv1.ValidatingAdmissionPolicy {
	p := newCustomerPolicy("polder-customer-robot-tokens")
	r := createOrUpdate("", "v1", "serviceaccounts/token")
	r.Operations = []admissionv1.OperationType{admissionv1.Create}
	p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{r}
	p.Spec.Variables = []admissionv1.Variable{{Name: "trusted",
		Expression: "authorizer.group('').resource('serviceaccounts').subresource('token').check('create').allowed()"}}
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: fmt.Sprintf("request.name.startsWith(%q) || variables.trusted", v1alpha1.RobotAccountPrefix),
			Message:    "tokens are given for robots of the tenant only; name one in spec.robots of the Tenant",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
		},
		{
			Expression: fmt.Sprintf("!has(object.spec.expirationSeconds) || object.spec.expirationSeconds <= %d || variables.trusted",
				maxTokenSeconds),
			Message: "spec.expirationSeconds: a token of a robot is valid for 90 days at most; ask for less, and for another in time",
			Reason:  ptr.To(metav1.StatusReasonForbidden),
		},
	}
	return p
}

// planePolicy returns the policy that keeps a namespace in its plane. What is in it would be out of sight in another.
func planePolicy() *admissionv1.ValidatingAdmissionPolicy {
	p := newCustomerPolicy("polder-namespace-plane")
	p.Spec.MatchConstraints.NamespaceSelector = nil
	r := createOrUpdate("", "v1", "namespaces")
	r.Operations, r.Scope = []admissionv1.OperationType{admissionv1.Update}, ptr.To(admissionv1.ClusterScope)
	p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{r}
	value := func(o string) string {
		return fmt.Sprintf("(has(%[1]s.metadata.labels) && %[2]q in %[1]s.metadata.labels ? %[1]s.metadata.labels[%[2]q] : '')", o,
			v1alpha1.PlaneLabel)
	}
	p.Spec.Validations = []admissionv1.Validation{{
		Expression: value("object") + " == " + value("oldObject"),
		Message: v1alpha1.PlaneLabel +
			": the label says which plane has what is in the namespace, and stays as it was made; make another namespace",
		Reason: ptr.To(metav1.StatusReasonForbidden),
	}}
	return p
}

// newCustomerPolicy returns a policy for namespaces of customers.
func newCustomerPolicy(name string) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.FailurePolicy = ptr.To(admissionv1.Fail)
	p.Spec.MatchConstraints = &admissionv1.MatchResources{
		MatchPolicy: ptr.To(admissionv1.Equivalent), // older versions of a kind are converted first
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1alpha1.CustomerLabel, Operator: metav1.LabelSelectorOpExists},
		}},
	}
	return p
}

// createOrUpdate returns a rule for writing a kind in namespaces.
func createOrUpdate(group, version, resource string) admissionv1.NamedRuleWithOperations {
	r := admissionv1.NamedRuleWithOperations{}
	r.Operations = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	r.Rule = admissionv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
		Scope: ptr.To(admissionv1.NamespacedScope),
	}
	return r
}

// mayCreateEverywhere returns an expression for whether the user may create a kind in all namespaces. One verb is asked
// about: the API server lets an expression ask about two at most.
func mayCreateEverywhere(group, resource string) string {
	return fmt.Sprintf("authorizer.group(%s).resource(%s).check('create').allowed()", group, resource)
}

// celHas returns an expression for whether a field of an object and all above it are there.
func celHas(object string, field []string) string {
	var out []string
	for _, name := range field {
		object += "." + name
		out = append(out, "has("+object+")")
	}
	return strings.Join(out, " && ")
}
