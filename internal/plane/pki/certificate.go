package pki

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/files/certificate"
)

// backdate makes certificates valid on machines whose clock is behind ours, and here after the clock was set back: by
// an hour, for one that took its time zone for the world's.
const backdate = 2 * time.Hour

// serialBits is the length of serial numbers.
const serialBits = 127

// keyPair is a certificate with its key.
type keyPair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// leafSpec describes a certificate that an authority signs.
type leafSpec struct {
	file    string // in the pki directory: certificate and key in one file, so that both change at once
	subject pkix.Name
	usage   x509.ExtKeyUsage
	names   []string
	ips     []net.IP
}

// selfSign makes an authority's certificate for key.
func selfSign(name string, key crypto.Signer, now time.Time, life time.Duration) (*x509.Certificate, error) {
	return certificate.SelfSign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}, certificate.Terms{SerialBits: serialBits, Now: now, Backdate: backdate, Lifetime: life}, key)
}

// issue makes the certificate that l describes, signed by ca. It never outlives ca.
func issue(l leafSpec, key crypto.Signer, ca keyPair, now time.Time, life time.Duration) (*x509.Certificate, error) {
	issuer := certificate.Issuer{Certificate: ca.cert, Key: ca.key}
	terms := certificate.Terms{SerialBits: serialBits, Now: now, Backdate: backdate, Lifetime: life, WithinIssuer: true}
	return issuer.Issue(&x509.Certificate{
		Subject:     l.subject,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
		DNSNames:    l.names,
		IPAddresses: l.ips,
	}, terms, key.Public())
}

// needsRenewal says whether a certificate has passed two thirds of its life, or is not yet valid
// because the clock was set back.
func needsRenewal(c *x509.Certificate, now time.Time) bool {
	return !now.Before(renewAt(c)) || now.Before(c.NotBefore)
}

// renewAt counts from when the certificate was made, not from its backdated beginning: one with a short life
// would otherwise be due at once.
func renewAt(c *x509.Certificate) time.Time {
	life := c.NotAfter.Sub(c.NotBefore) - backdate
	return c.NotAfter.Add(-life / 3)
}

// matches says whether a certificate is still what l describes, signed by ca.
func (l leafSpec) matches(c *x509.Certificate, ca *x509.Certificate) bool {
	return c.CheckSignatureFrom(ca) == nil &&
		c.Subject.String() == l.subject.String() &&
		slices.Equal(c.DNSNames, l.names) &&
		slices.EqualFunc(c.IPAddresses, l.ips, net.IP.Equal)
}

// save writes certificate and key as one file.
func (p keyPair) save(path string) error {
	k, err := certificate.EncodeKey(p.key)
	if err != nil {
		return fmt.Errorf("encoding key for %s: %w", path, err)
	}
	return atomicfile.Write(path, append(certificate.Encode(p.cert), k...), 0o600)
}

// loadKeyPair reads what save wrote; ok is false if there is nothing yet.
func loadKeyPair(path string) (p keyPair, ok bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("reading certificate: %w", err)
	}
	if p, err = parseKeyPair(b); err != nil {
		return p, false, fmt.Errorf("%s is damaged (%w); restore it from a backup, or remove it and have it made anew", path,
			err)
	}
	return p, true, nil
}

func parseKeyPair(b []byte) (keyPair, error) {
	var p keyPair
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		var err error
		switch block.Type {
		case certificate.PEMType:
			p.cert, err = x509.ParseCertificate(block.Bytes)
		case certificate.KeyPEMType:
			var k any
			if k, err = x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
				p.key, _ = k.(crypto.Signer)
			}
		}
		if err != nil {
			return p, err
		}
	}
	if p.cert == nil || p.key == nil {
		return p, errors.New("it lacks a certificate or a key")
	}
	return p, nil
}
