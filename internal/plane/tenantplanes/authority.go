package tenantplanes

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// FrontName is the name in the certificate with which requests are handed on. A plane of a tenant believes who has it,
// and it alone, whose requests they are.
const FrontName = "polder:front"

// authorityLife is longer than any process runs. The key is nowhere but in its memory, and made anew at each start.
const authorityLife = 10 * 365 * 24 * time.Hour

// authority vouches for this process to the planes that it starts.
type authority struct {
	pem  []byte          // what they trust
	leaf tls.Certificate // what this process shows them
}

func newAuthority(c clock.PassiveClock) (*authority, error) {
	terms := certificate.Terms{SerialBits: 127, Now: c.Now(), Backdate: 2 * time.Hour, Lifetime: authorityLife} //nolint:mnd // as in package pki
	key, err := certificate.NewKey()
	if err != nil {
		return nil, err
	}
	ca, err := certificate.SelfSign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "polder-front-ca"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, terms, key)
	if err != nil {
		return nil, err
	}
	var own crypto.Signer
	if own, err = certificate.NewKey(); err != nil {
		return nil, err
	}
	terms.WithinIssuer = true
	cert, err := certificate.Issuer{Certificate: ca, Key: key}.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: FrontName}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, terms, own.Public())
	if err != nil {
		return nil, err
	}
	return &authority{
		pem:  certificate.Encode(ca),
		leaf: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: own, Leaf: cert},
	}, nil
}
