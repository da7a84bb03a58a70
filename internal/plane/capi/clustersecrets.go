package capi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/internal/workload"
)

// clusterSecretPath is the path of the webhook for Secrets that Cluster API finds by their names.
const clusterSecretPath = "/validate-cluster-secret" //nolint:gosec // a path, no secret

// clusterSecretSuffixes end the names of Secrets that Cluster API reads for the cluster before the suffix, whoever
// wrote them. Their type and labels do not matter to it. Bootstrap data are Secrets of the same type and label, under
// any name; what is in them is for machines, and is none of these.
var clusterSecretSuffixes = []secret.Purpose{
	secret.Kubeconfig, secret.ClusterCA, secret.EtcdCA, secret.ServiceAccount, secret.FrontProxyCA,
	secret.APIServerEtcdClient,
}

// clusterSecretWebhook returns the webhook as it is registered. Secrets of other names, and writes that leave the
// content alone, do not come here, so that they cost nothing and do not depend on it.
func clusterSecretWebhook(url string, ca []byte) admissionv1.ValidatingWebhook {
	suffixes := make([]string, len(clusterSecretSuffixes))
	for i, s := range clusterSecretSuffixes {
		suffixes[i] = string(s)
	}
	return admissionv1.ValidatingWebhook{
		Name:         "cluster-secret.polder.dev",
		ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To(url + clusterSecretPath), CABundle: ca},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"},
				Scope: ptr.To(admissionv1.NamespacedScope),
			},
		}},
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "is-named-after-a-cluster", Expression: fmt.Sprintf("object.metadata.name.matches('-(%s)$')",
				strings.Join(suffixes, "|"))},
			// One that was stored before this check must still be deleted with its cluster.
			{Name: "content-changed",
				Expression: "has(object.data) && (oldObject == null || !has(oldObject.data) || object.data != oldObject.data)"},
		},
		FailurePolicy:           ptr.To(admissionv1.Fail),
		MatchPolicy:             ptr.To(admissionv1.Equivalent),
		SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](10),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// clusterSecretHandler refuses Secrets of clusters that would do harm where they are used. It needs nothing but the
// Secret, so it can answer before any cache is filled: Cluster API writes such Secrets as soon as it runs.
func clusterSecretHandler() (admission.HandlerFunc, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := admission.NewDecoder(scheme)
	return func(_ context.Context, req admission.Request) admission.Response {
		s := &corev1.Secret{}
		if err := decoder.Decode(req, s); err != nil {
			// The reason could quote a key.
			return admission.Errored(http.StatusBadRequest, errors.New("the Secret cannot be read"))
		}
		if err := checkClusterSecret(s); err != nil {
			return admission.Denied(err.Error())
		}
		return admission.Allowed("")
	}, nil
}

// checkClusterSecret returns what is wrong with a Secret of a cluster. Content that Cluster API does not read is not
// checked: others may use such names too.
func checkClusterSecret(s *corev1.Secret) error {
	if strings.HasSuffix(s.Name, "-"+string(secret.Kubeconfig)) {
		kubeconfig, ok := s.Data[secret.KubeconfigDataName]
		if !ok {
			return nil
		}
		if _, err := workload.RESTConfigFromKubeconfig(kubeconfig); err != nil {
			return fmt.Errorf("data.%s: %w; the plane connects to cluster %q with it, so write an https server, certificates, keys and tokens themselves, and no files, programs or proxies",
				secret.KubeconfigDataName, err, strings.TrimSuffix(s.Name, "-"+string(secret.Kubeconfig)))
		}
		return nil
	}
	for _, key := range []string{secret.TLSCrtDataName, secret.TLSKeyDataName} {
		if i := firstNotPEM(s.Data[key]); i >= 0 {
			return fmt.Errorf("data[%q]: byte %d is a character that PEM does not have; it goes into a file of each machine as it is, so write certificates and keys in plain ASCII with line feeds", key, i)
		}
	}
	return nil
}

// firstNotPEM returns where the first character is that is none of PEM and of the text that people put around it; -1 if
// there is none. Cluster API indents these files line by line into the YAML that a machine starts with, but takes only
// line feeds for ends of lines; YAML takes others too, and what follows them would be read as YAML.
func firstNotPEM(b []byte) int {
	for i, c := range b {
		switch {
		case c >= ' ' && c <= '~', c == '\n', c == '\t', c == '\r' && i+1 < len(b) && b[i+1] == '\n':
		default:
			return i
		}
	}
	return -1
}
