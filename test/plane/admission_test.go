package plane

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// TestAdmissionPolicy and TestAdmissionWebhook show that operators can add rules of their own.
func TestAdmissionPolicy(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-x." + ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: configMapsIn(ns),
			Validations:      []admissionv1.Validation{{Expression: "!('x' in object.data)", Message: "x is not for here"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	for _, o := range []client.Object{policy, binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), o) })
	}
	testenv.Eventually(t, wait, func() error { return mustBeRefused(t, c, ns, "x", "x is not for here") })
	if err := c.Create(t.Context(), configMap(ns, "y")); err != nil {
		t.Errorf("what the policy allows is refused: %v", err)
	}
}

func TestAdmissionWebhook(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionreview.AdmissionReview
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionreview.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "the webhook says no"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer srv.Close()
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "no." + ns},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "no.test.polder.dev",
			ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To(srv.URL), CABundle: certificateOf(srv.TLS)},
			Rules:                   []admissionv1.RuleWithOperations{configMapsIn(ns).ResourceRules[0].RuleWithOperations},
			NamespaceSelector:       configMapsIn(ns).NamespaceSelector,
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if err := c.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(t.Context(), hook) })
	testenv.Eventually(t, wait, func() error { return mustBeRefused(t, c, ns, "z", "the webhook says no") })
}

func configMapsIn(ns string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
}

func configMap(ns, key string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "a-"}, Data: map[string]string{key: "1"}}
}

// mustBeRefused returns nil once a ConfigMap with the key is refused with the given words.
func mustBeRefused(t *testing.T, c client.Client, ns, key, words string) error {
	t.Helper()
	err := c.Create(t.Context(), configMap(ns, key), client.DryRunAll)
	if err != nil && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)) && strings.Contains(err.Error(), words) {
		return nil
	}
	return fmt.Errorf("want a refusal with %q, got: %w", words, err)
}

func certificateOf(c *tls.Config) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificates[0].Certificate[0]})
}
