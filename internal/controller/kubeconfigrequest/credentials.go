package kubeconfigrequest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
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

// notAfter returns when the certificate expires: never later than that of the authority.
func (o *credentialSpec) notAfter() time.Time {
	end := o.now.Add(o.lifetime).Truncate(time.Second) // certificates have no fractions of seconds
	if end.After(o.authority.certificate.NotAfter) {
		return o.authority.certificate.NotAfter
	}
	return end
}

// signCertificate signs a certificate for a key.
func (o *credentialSpec) signCertificate(key crypto.PublicKey) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               o.subject(),
		NotBefore:             o.now.Add(-backdate),
		NotAfter:              o.notAfter(),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, // and IsCA is false
	}
	der, err := x509.CreateCertificate(rand.Reader, t, o.authority.certificate, key, o.authority.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for cluster %s: %w", o.cluster, err)
	}
	return x509.ParseCertificate(der)
}

// newSerial returns a random number of 128 bits that is not zero.
func newSerial() (*big.Int, error) {
	most := new(big.Int).Lsh(big.NewInt(1), 128)
	n, err := rand.Int(rand.Reader, most.Sub(most, big.NewInt(1)))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

// matches reports whether a certificate is one that signCertificate made for this request, and is still valid. Whoever
// may sign in the workload cluster itself has the same authority, so everything is compared.
func (o *credentialSpec) matches(c *x509.Certificate) bool {
	subject, err := asn1.Marshal(o.subject().ToRDNSequence())
	return err == nil && bytes.Equal(c.RawSubject, subject) &&
		c.CheckSignatureFrom(o.authority.certificate) == nil &&
		!c.IsCA && slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) && len(c.UnknownExtKeyUsage) == 0 &&
		!o.now.Before(c.NotBefore) && o.now.Before(c.NotAfter) && !c.NotAfter.After(o.now.Add(o.lifetime))
}
