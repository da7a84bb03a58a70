package kubeconfigrequest

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
)

// backdate makes certificates valid on machines whose clocks are a little behind ours.
const backdate = 5 * time.Minute

// credentialSpec is what a certificate, and a kubeconfig with it, are made from.
type credentialSpec struct {
	cluster   string // name of the cluster
	endpoint  string // URL of its API server
	role      v1alpha1.Role
	username  string // the user who asked
	lifetime  time.Duration
	now       time.Time
	authority *authority
}

// groupForRole returns the group that a role stands for in workload clusters; "" if there is no such role.
func groupForRole(role v1alpha1.Role) string {
	switch role {
	case v1alpha1.RoleAdmin:
		return GroupAdmin
	case v1alpha1.RoleViewer:
		return GroupViewer
	}
	return ""
}

// subject returns the user and group of the certificate. With the prefix, no certificate can name a user that
// Kubernetes itself knows.
func (o *credentialSpec) subject() pkix.Name {
	return pkix.Name{CommonName: UserPrefix + o.username, Organization: []string{groupForRole(o.role)}}
}

// signCertificate signs a certificate for a key. It never expires later than that of the authority.
func (o *credentialSpec) signCertificate(key crypto.PublicKey) (*x509.Certificate, error) {
	t := &x509.Certificate{
		Subject:               o.subject(),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, // and IsCA is false
	}
	terms := certificate.Terms{SerialBits: 128, Now: o.now, Backdate: backdate, Lifetime: o.lifetime, WithinIssuer: true}
	issuer := certificate.Issuer{Certificate: o.authority.certificate, Key: o.authority.key}
	c, err := issuer.Issue(t, terms, key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for cluster %s: %w", o.cluster, err)
	}
	return c, nil
}

// matches reports whether a certificate is one that signCertificate made for this request, and is still valid. Whoever
// may sign in the workload cluster itself has the same authority, so everything is compared.
func (o *credentialSpec) matches(c *x509.Certificate) bool {
	subject, err := asn1.Marshal(o.subject().ToRDNSequence())
	return err == nil && bytes.Equal(c.RawSubject, subject) &&
		c.CheckSignatureFrom(o.authority.certificate) == nil &&
		!c.IsCA && slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) &&
		len(c.UnknownExtKeyUsage) == 0 &&
		!o.now.Before(c.NotBefore) && o.now.Before(c.NotAfter) && !c.NotAfter.After(o.now.Add(o.lifetime))
}
