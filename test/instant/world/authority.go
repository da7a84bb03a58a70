package world

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// certificateLifetime is that of all certificates: longer than any test.
const certificateLifetime = 30 * 24 * time.Hour

// Authority is the CA of one cluster, for its API and for its users.
type Authority struct {
	Certificate, Key []byte // in PEM form

	certificate *x509.Certificate
	key         crypto.Signer
}

// NewAuthority makes the CA of a cluster.
func NewAuthority(name string) (*Authority, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, key, err := sign(template, nil)
	if err != nil {
		return nil, err
	}
	return ReadAuthority(certificate, key)
}

// ReadAuthority reads a CA that was made before.
func ReadAuthority(certificate, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("the authority of the cluster cannot be read") // the reason could quote the key
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the authority of the cluster has a key that cannot sign")
	}
	return &Authority{Certificate: certificate, Key: key, certificate: pair.Leaf, key: signer}, nil
}

// IssueClientCertificate issues a certificate for a user, with its key.
func (a *Authority) IssueClientCertificate(user string, groups ...string) (certificate, key []byte, err error) {
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
}

// serverTLSConfig has the certificate of the cluster at an address, and whose client certificates it accepts.
func (a *Authority) serverTLSConfig(address netip.Addr) (*tls.Config, error) {
	certificate, key, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{address.AsSlice()},
	}, a)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	users := x509.NewCertPool()
	users.AddCert(a.certificate)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: users, SessionTicketsDisabled: true,
	}, nil
}

// sign makes a key and a certificate for it, signed by a CA or by itself.
func sign(template *x509.Certificate, by *Authority) (cert, key []byte, err error) {
	own, err := certificate.NewKey()
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	terms := certificate.Terms{SerialBits: 120, Now: time.Now(), Backdate: time.Hour, Lifetime: certificateLifetime}
	var c *x509.Certificate
	if by == nil {
		c, err = certificate.SelfSign(template, terms, own)
	} else {
		c, err = certificate.Issuer{Certificate: by.certificate, Key: by.key}.Issue(template, terms, own.Public())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	key, err = certificate.EncodeKey(own)
	return certificate.Encode(c), key, err
}
