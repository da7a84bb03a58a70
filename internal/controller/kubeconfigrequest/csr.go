package kubeconfigrequest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Limits of what people send. Signatures of the largest RSA key are still checked quickly.
const (
	maxCSRBytes = 16 << 10 // bytes
	minRSA      = 2048     // bits
	maxRSA      = 8192     // bits
)

const (
	csrPEMBegin = "-----BEGIN CERTIFICATE REQUEST-----"
	csrPEMType  = "CERTIFICATE REQUEST"
)

// parseCSRPublicKey returns the key for which a certificate is requested, from a signing request in PEM form that
// proves that the user has the private key. Nothing else of it is used: who somebody is, and what they may do, is not
// theirs to say. Errors quote nothing of it.
func parseCSRPublicKey(csrPEM string) (crypto.PublicKey, error) {
	if len(csrPEM) > maxCSRBytes {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(csrPEM), maxCSRBytes)
	}
	// pem.Decode looks for the first block that can be read, past whatever is before it.
	text := strings.TrimSpace(csrPEM)
	if !strings.HasPrefix(text, csrPEMBegin) || strings.Count(text, "-----BEGIN") != 1 {
		return nil, fmt.Errorf("it must be one block of PEM that begins with %s, and nothing else", csrPEMBegin)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != csrPEMType || len(block.Headers) > 0 || len(rest) > 0 {
		return nil, errors.New("its PEM block cannot be read, has headers, or is followed by something")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it is no PKCS #10 certificate signing request")
	}
	// Before the signature is checked: with a key that is too large, that takes long.
	if err := checkKey(csr.PublicKey); err != nil {
		return nil, err
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, errors.New("its signature is not by its own key")
	}
	return csr.PublicKey, nil
}

// checkKey refuses keys that are weak, or too much work to check.
func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA || n > maxRSA {
			return fmt.Errorf("its RSA key has %d bits; take one with %d to %d", n, minRSA, maxRSA)
		}
		return nil
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return errors.New("its ECDSA key is on a curve that is not taken; take P-256, P-384 or P-521")
		}
		return nil
	case ed25519.PublicKey:
		return nil
	}
	return errors.New("its key is of a kind that is not taken; take ECDSA, Ed25519 or RSA")
}
