package kubeconfigrequest

import (
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// issueCredentials issues the credentials. The event is recorded before the status is written: an event may report
// credentials that nobody got, but nobody gets any that no event reports.
func (r *Reconciler) issueCredentials(ctx context.Context, s *scope) error {
	issue := r.issueKubeconfigSecret
	if s.request.Spec.CertificateRequest != "" {
		issue = r.issueCertificate
	}
	c, err := issue(ctx, s)
	if err != nil {
		return err
	}
	r.recordIssuedEvents(s, c)
	status := &s.request.Status
	status.Endpoint, status.CertificateAuthority = s.credentials.endpoint, string(s.credentials.authority.bundle)
	status.ExpirationTime = ptr.To(metav1.NewTime(c.NotAfter))
	if s.request.Spec.CertificateRequest != "" {
		status.Certificate = string(certificate.Encode(c))
		return nil
	}
	status.SecretName = secretName(s.request)
	return nil
}

// issueCertificate signs a certificate for a key that only the user has. If this run ends before the status is written,
// nobody has seen it.
func (r *Reconciler) issueCertificate(_ context.Context, s *scope) (*x509.Certificate, error) {
	key, err := parseCSRPublicKey(s.request.Spec.CertificateRequest)
	if err != nil {
		return nil, s.stopIfBlocked(newInvalidObstacle("spec.certificateRequest: %v", err))
	}
	return s.credentials.signCertificate(key)
}

// issueKubeconfigSecret writes a kubeconfig into a Secret of the request. If an earlier run ended after that and before
// the status was written, the Secret is there and is used.
func (r *Reconciler) issueKubeconfigSecret(ctx context.Context, s *scope) (*x509.Certificate, error) {
	name := secretName(s.request)
	existing, err := r.readSecret(ctx, s.request.Namespace, name)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		if !metav1.IsControlledBy(existing, s.request) {
			return nil, s.stopIfBlocked(newObstacle(v1alpha1.ReasonNotOurs, pollDelay,
				"there is a Secret %s that does not belong to this request, and it is left alone; delete it, or make a request of another name", name))
		}
		if c := s.credentials.reusableCertificate(existing.Data[kubeconfigKey]); c != nil {
			return c, nil
		}
	}
	file, c, err := s.credentials.newKubeconfig()
	if err != nil {
		return nil, err
	}
	err = r.writeSecret(ctx, s.request, existing, file)
	switch {
	// Another run has just created it. The next one reads it, and whom it belongs to.
	case apierrors.IsAlreadyExists(err):
		return nil, reconcile.Wait(cacheLagDelay, "a look at who made it")
	case apierrors.IsInvalid(err): // somebody made it immutable, or of a type that cannot have this key
		return nil, s.stopIfBlocked(newObstacle(v1alpha1.ReasonNotOurs, pollDelay,
			"Secret %s was changed so that it cannot be written; delete it, and it is made anew", name))
	}
	return c, err
}

// writeSecret writes the Secret: a new one, or over one of ours that cannot be used.
func (r *Reconciler) writeSecret(ctx context.Context, o *v1alpha1.KubeconfigRequest, existing *corev1.Secret,
	file []byte) error {
	data := map[string][]byte{kubeconfigKey: file}
	if existing != nil {
		existing.Data = data
		if err := r.Live.Update(ctx, existing); err != nil {
			return fmt.Errorf("writing Secret %s: %w", existing.Name, err)
		}
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: secretName(o), OwnerReferences: []metav1.OwnerReference{ownerReferenceTo(o)},
		},
		Type: corev1.SecretTypeOpaque, // Cluster API moves Secrets of its own type with their clusters
		Data: data,
	}
	if err := r.Live.Create(ctx, secret); err != nil {
		return fmt.Errorf("making Secret %s: %w", secret.Name, err)
	}
	return nil
}

// ownerReferenceTo returns a controller reference to the request.
func ownerReferenceTo(o *v1alpha1.KubeconfigRequest) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "KubeconfigRequest", Name: o.Name, UID: o.UID,
		Controller: ptr.To(true),
	}
}
