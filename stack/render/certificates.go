package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"text/template"
	"time"
)

// certificate is what templates get: both fields are PEM.
type certificate struct {
	Cert string
	Key  string
}

// certificateFuncs are the functions that make keys and certificates. They answer as the template
// library's do, but use the record instead of randomness and the clock.
func (c *randomSource) certificateFuncs() template.FuncMap {
	return template.FuncMap{
		"genPrivateKey":   c.genPrivateKey,
		"buildCustomCert": buildCustomCert,
		"genCA": func(cn string, days int) (certificate, error) {
			return c.issueCertificate("genCA", certificateRequest{cn: cn, days: days, ca: true})
		},
		"genCAWithKey": func(cn string, days int, key string) (certificate, error) {
			return c.issueCertificate("genCAWithKey", certificateRequest{cn: cn, days: days, ca: true, key: key})
		},
		"genSelfSignedCert": func(cn string, ips, names []any, days int) (certificate, error) {
			return c.issueCertificate("genSelfSignedCert", certificateRequest{cn: cn, ips: ips, names: names, days: days})
		},
		"genSelfSignedCertWithKey": func(cn string, ips, names []any, days int, key string) (certificate, error) {
			return c.issueCertificate("genSelfSignedCertWithKey", certificateRequest{
				cn: cn, ips: ips, names: names, days: days, key: key,
			})
		},
		"genSignedCert": func(cn string, ips, names []any, days int, ca certificate) (certificate, error) {
			return c.issueCertificate("genSignedCert", certificateRequest{
				cn: cn, ips: ips, names: names, days: days, signer: &ca,
			})
		},
		"genSignedCertWithKey": func(cn string, ips, names []any, days int, ca certificate, key string) (certificate, error) {
			return c.issueCertificate("genSignedCertWithKey", certificateRequest{
				cn: cn, ips: ips, names: names, days: days, signer: &ca, key: key,
			})
		},
	}
}

// certificateRequest is what a template asks for.
type certificateRequest struct {
	cn         string
	ips, names []any
	days       int
	ca         bool
	signer     *certificate // nil if it signs itself
	key        string       // PEM; empty if one is to be made
}

func (c *randomSource) issueCertificate(function string, r certificateRequest) (certificate, error) {
	// The signer is no argument of the call: a CA that is renewed must not change the keys of what it signs.
	call := c.beginCall(function, r.cn, r.ips, r.names, r.days)
	// Before a key is made: a key must not be recorded for a request that fails.
	t, err := c.certTemplate(r)
	if err != nil {
		return certificate{}, err
	}
	key, err := c.parseOrMakeKey(call, r.key)
	if err != nil {
		return certificate{}, err
	}
	// After the key: a record without keys derives the key from the beginning of the stream.
	if t.SerialNumber, err = readSerialNumber(call.stream); err != nil {
		return certificate{}, err
	}
	parent, signer := t, key
	if r.signer != nil {
		if parent, signer, err = parsePair(*r.signer); err != nil {
			return certificate{}, err
		}
	}
	// Without a source of randomness, signatures are deterministic: RSA with PKCS #1 v1.5, ECDSA after RFC 6979, Ed25519.
	der, err := x509.CreateCertificate(nil, t, parent, key.Public(), signer)
	if err != nil {
		return certificate{}, fmt.Errorf("making the certificate of %q: %w", r.cn, err)
	}
	if c.expires == nil || t.NotAfter.Before(*c.expires) {
		c.expires = &t.NotAfter
	}
	keyPEM, err := marshalKey(key)
	return certificate{Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), Key: keyPEM}, err
}

func (c *randomSource) parseOrMakeKey(call randomCall, key string) (crypto.Signer, error) {
	if key == "" {
		return c.privateKey(call, rsa2048)
	}
	return parseKey(key)
}

func readSerialNumber(stream io.Reader) (*big.Int, error) {
	serial := make([]byte, 16)
	if _, err := io.ReadFull(stream, serial); err != nil {
		return nil, err
	}
	return new(big.Int).SetBytes(serial), nil
}

// certTemplate gives a certificate without its serial number.
func (c *randomSource) certTemplate(r certificateRequest) (*x509.Certificate, error) {
	from := c.record.Time
	if c.record.Renewed.After(from) {
		from = c.record.Renewed
	}
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.cn},
		NotBefore:             from,
		NotAfter:              from.Add(time.Duration(r.days) * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  r.ca,
	}
	if r.ca {
		t.KeyUsage |= x509.KeyUsageCertSign
	}
	for _, v := range r.ips {
		ip := net.ParseIP(fmt.Sprint(v))
		if ip == nil {
			return nil, fmt.Errorf("%.60q is no IP address", fmt.Sprint(v))
		}
		t.IPAddresses = append(t.IPAddresses, ip)
	}
	for _, v := range r.names {
		name, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%.60s is no DNS name", fmt.Sprint(v))
		}
		t.DNSNames = append(t.DNSNames, name)
	}
	return t, nil
}

func (c *randomSource) genPrivateKey(kind string) (string, error) {
	call := c.beginCall("genPrivateKey", kind)
	k, ok := map[string]keyKind{"": rsa4096, "rsa": rsa4096, "ecdsa": ecdsaP256, "ed25519": ed25519Key}[kind]
	if !ok {
		return "", fmt.Errorf("keys of the kind %.40q are not made; choose rsa, ecdsa or ed25519", kind)
	}
	key, err := c.privateKey(call, k)
	if err != nil {
		return "", err
	}
	return marshalKey(key)
}

// buildCustomCert decodes a certificate and its key, both in base64, and checks that they parse.
func buildCustomCert(cert64, key64 string) (certificate, error) {
	cert, certErr := base64.StdEncoding.DecodeString(cert64)
	key, keyErr := base64.StdEncoding.DecodeString(key64)
	if err := errors.Join(certErr, keyErr); err != nil {
		return certificate{}, fmt.Errorf("certificate and key must be in base64: %w", err)
	}
	c := certificate{Cert: string(cert), Key: string(key)}
	_, _, err := parsePair(c)
	return c, err
}

func parsePair(c certificate) (*x509.Certificate, crypto.Signer, error) {
	block, _ := pem.Decode([]byte(c.Cert))
	if block == nil {
		return nil, nil, errors.New("the certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := parseKey(c.Key)
	return cert, key, err
}

func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("the type %.40q is not known", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return signer, nil
}

func marshalKey(key crypto.Signer) (string, error) {
	var block *pem.Block
	switch k := key.(type) {
	case *rsa.PrivateKey:
		block = &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return "", err
		}
		block = &pem.Block{Type: "EC PRIVATE KEY", Bytes: der}
	default:
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return "", err
		}
		block = &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	}
	return string(pem.EncodeToMemory(block)), nil
}
