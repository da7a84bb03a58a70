package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// protectedWebhook completes the webhook that refuses to delete parts of protected clusters. The plane's own parts,
// providers, and the controllers of Kubernetes replace machines, remediate, and clean up: it is not for them.
func protectedWebhook(w admissionv1.ValidatingWebhook) admissionv1.ValidatingWebhook {
	w.Name = "protected.workloadcluster.polder.dev"
	// All kinds: providers have groups of their own, and with a Secret of certificates goes the whole cluster.
	w.Rules = []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Delete},
		Rule: admissionv1.Rule{
			APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
			Scope: ptr.To(admissionv1.NamespacedScope),
		},
	}}
	w.MatchConditions = []admissionv1.MatchCondition{
		{Name: "is-of-a-cluster", Expression: fmt.Sprintf(
			"oldObject != null && has(oldObject.metadata.labels) && (%q in oldObject.metadata.labels || %q in oldObject.metadata.labels)",
			clusterv1.ClusterNameLabel, v1alpha1.WorkloadClusterLabel)},
		{Name: "not-by-a-controller", Expression: fmt.Sprintf(
			"!request.userInfo.username.matches('^(polder|system:serviceaccount:kube-system|system:serviceaccount:%s):')",
			v1alpha1.ProvidersNamespace)},
	}
	return w
}

// checkProtected refuses the deletion of a part of a cluster that is protected. It reads from the API server: a
// protection that was lifted a moment ago must not be found by an old cache, nor one that was just set be missed.
func checkProtected(live client.Reader) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		old := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		name := old.Labels[v1alpha1.WorkloadClusterLabel]
		if name == "" {
			name = old.Labels[clusterv1.ClusterNameLabel] // a Cluster has the name of its WorkloadCluster
		}
		o := &v1alpha1.WorkloadCluster{}
		err := live.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, o)
		if client.IgnoreNotFound(err) != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if err != nil || !ptr.Deref(o.Spec.DeletionProtection, false) || !o.DeletionTimestamp.IsZero() {
			return admission.Allowed("")
		}
		return admission.Denied(fmt.Sprintf(
			"%s %s is a part of cluster %s, which is protected from deletion; set spec.deletionProtection of WorkloadCluster %s to false first",
			req.Kind.Kind, old.Name, name, name))
	}
}
