// Package certificate makes keys, certificates and signing requests, and encodes them as files and kubeconfigs hold
// them. What goes into a certificate is the caller's to say: whom it names, what it is for, and its Terms.
package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Terms are the serial number and validity of a certificate.
type Terms struct {
	SerialBits   uint          // the serial number is random, not zero, and has at most so many bits
	Now          time.Time     // when it is issued
	Backdate     time.Duration // how long before Now it is valid, for machines whose clocks are behind
	Lifetime     time.Duration // how long after Now it is valid
	WithinIssuer bool          // it expires no later than the certificate of its issuer
}

// Issuer signs certificates.
type Issuer struct {
	Certificate *x509.Certificate
	Key         crypto.Signer // that Certificate is for
}

// Issue returns a certificate for a public key. Of the template, serial number and validity are not used.
func (i Issuer) Issue(template *x509.Certificate, terms Terms, key crypto.PublicKey) (*x509.Certificate, error) {
	c, err := terms.fillIn(template)
	if err != nil {
		return nil, err
	}
	if terms.WithinIssuer && c.NotAfter.After(i.Certificate.NotAfter) {
		c.NotAfter = i.Certificate.NotAfter
	}
	return create(c, i.Certificate, key, i.Key)
}

// SelfSign returns a certificate for a key that signs it itself. Of the template, serial number and validity are not
// used.
func SelfSign(template *x509.Certificate, terms Terms, key crypto.Signer) (*x509.Certificate, error) {
	c, err := terms.fillIn(template)
	if err != nil {
		return nil, err
	}
	return create(c, c, key.Public(), key)
}

// fillIn returns a copy of a template with serial number and validity.
func (t Terms) fillIn(template *x509.Certificate) (*x509.Certificate, error) {
	serial, err := newSerial(t.SerialBits)
	if err != nil {
		return nil, err
	}
	c := *template
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, t.Now.Add(-t.Backdate), t.Now.Add(t.Lifetime)
	return &c, nil
}

// newSerial returns a random number that is not zero, and has at most so many bits.
func newSerial(bits uint) (*big.Int, error) {
	if bits == 0 {
		return nil, errors.New("a certificate needs a serial number")
	}
	one := big.NewInt(1)
	most := new(big.Int).Lsh(one, bits)
	n, err := rand.Int(rand.Reader, most.Sub(most, one))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n.Add(n, one), nil
}

func create(c, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// NewKey makes an ECDSA key on the curve P-256, which all our keys are.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// NewKeyAndRequest makes a key, and a request to sign it for a name, both in PEM form.
func NewKeyAndRequest(name string) (key []byte, request string, err error) {
	private, err := NewKey()
	if err != nil {
		return nil, "", err
	}
	if key, err = EncodeKey(private); err != nil {
		return nil, "", err
	}
	r, err := NewRequest(pkix.Name{CommonName: name}, private)
	return key, string(r), err
}

// NewRequest returns a signing request for a key, in PEM form.
func NewRequest(subject pkix.Name, key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// PEMType is the type of the PEM block of a certificate, and KeyPEMType that of a key that EncodeKey has encoded.
const (
	PEMType    = "CERTIFICATE"
	KeyPEMType = "PRIVATE KEY"
)

// Encode returns a certificate in PEM form.
func Encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: PEMType, Bytes: c.Raw})
}

// EncodeKey returns a private key as PKCS #8 in PEM form. Where EC keys have a form of their own, SEC 1, use
// keyutil.MarshalPrivateKeyToPEM. Errors quote nothing of the key.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("the key that was made cannot be written") // the reason could quote it
	}
	return pem.EncodeToMemory(&pem.Block{Type: KeyPEMType, Bytes: der}), nil
}
