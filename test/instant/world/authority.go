package world

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
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
func sign(template *x509.Certificate, by *Authority) (certificate, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-time.Hour), now.Add(certificateLifetime)
	parent, signer := template, crypto.Signer(own)
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, own.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, errors.New("the key that was made cannot be written") // the reason could quote it
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}
