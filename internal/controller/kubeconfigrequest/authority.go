package kubeconfigrequest

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// maxAuthorityBytes is how many bytes of certificates an authority may have: all of them are put into a status.
const maxAuthorityBytes = 64 << 10

// authority signs certificates that a cluster's API server trusts.
type authority struct {
	bundle      []byte            // its certificates, in PEM form
	certificate *x509.Certificate // the one that belongs to the key
	key         crypto.Signer
}

// Format keeps the key out of whatever prints an authority.
func (*authority) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// parseAuthority parses a certificate and its key, both in PEM form. Errors quote nothing of either.
func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	if len(certPEM) > maxAuthorityBytes || len(keyPEM) > maxAuthorityBytes {
		return nil, fmt.Errorf("it has more than %d bytes in tls.crt or tls.key", maxAuthorityBytes)
	}
	if len(keyPEM) == 0 {
		return nil, errors.New(
			"it has no tls.key: the cluster's authority is kept elsewhere, and no certificate can be made here",
		)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, errors.New("its tls.crt and tls.key cannot be read, or do not belong together")
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("its tls.key is of a kind that cannot sign")
	}
	a := &authority{key: signer}
	for _, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("its tls.crt has something that is no certificate")
		}
		if a.certificate == nil {
			a.certificate = c
		}
		// Encoded anew, since PEM may have text around its blocks.
		a.bundle = append(a.bundle, certificate.Encode(c)...)
	}
	return a, nil
}

// checkCanSign returns an error if the authority cannot sign anything now.
func (a *authority) checkCanSign(now time.Time) error {
	c := a.certificate
	switch {
	case !c.BasicConstraintsValid || !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its certificate is not that of an authority")
	case now.Before(c.NotBefore):
		return fmt.Errorf("its certificate is not valid before %s", formatTime(c.NotBefore))
	case !now.Before(c.NotAfter):
		return fmt.Errorf("its certificate has ended at %s", formatTime(c.NotAfter))
	}
	return nil
}

// isInBundle reports whether the authority's certificate is in a bundle in PEM form.
func (a *authority) isInBundle(bundle []byte) bool {
	for len(bundle) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return false
		}
		if block.Type == certificate.PEMType && bytes.Equal(block.Bytes, a.certificate.Raw) {
			return true
		}
	}
	return false
}

// formatTime formats a time for messages.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
