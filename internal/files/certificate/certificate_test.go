package certificate

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

// now has a fraction, as real times have; certificates have none.
var (
	now    = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
	second = now.Truncate(time.Second)
)

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if k.Curve != elliptic.P256() {
		t.Fatalf("the key is on %s", k.Curve.Params().Name)
	}
	return k
}

// newIssuer makes an authority that is valid for an hour.
func newIssuer(t *testing.T) Issuer {
	t.Helper()
	key := newKey(t)
	c, err := SelfSign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, Terms{SerialBits: 64, Now: now, Backdate: time.Minute, Lifetime: time.Hour}, key)
	if err != nil {
		t.Fatal(err)
	}
	return Issuer{Certificate: c, Key: key}
}

func TestIssueValidity(t *testing.T) {
	issuer := newIssuer(t)
	for name, c := range map[string]struct {
		terms    Terms
		from, to time.Time
	}{
		"as long as it should":              {Terms{Lifetime: time.Minute}, second, second.Add(time.Minute)},
		"backdated":                         {Terms{Lifetime: time.Minute, Backdate: time.Hour}, second.Add(-time.Hour), second.Add(time.Minute)},
		"longer than the issuer":            {Terms{Lifetime: 2 * time.Hour}, second, second.Add(2 * time.Hour)},
		"no longer than the issuer":         {Terms{Lifetime: 2 * time.Hour, WithinIssuer: true}, second, second.Add(time.Hour)},
		"shorter than the issuer":           {Terms{Lifetime: time.Minute, WithinIssuer: true}, second, second.Add(time.Minute)},
		"to the very second, and no longer": {Terms{Lifetime: time.Hour, WithinIssuer: true}, second, second.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			c.terms.SerialBits, c.terms.Now = 64, now
			got, err := issuer.Issue(&x509.Certificate{}, c.terms, newKey(t).Public())
			if err != nil {
				t.Fatal(err)
			}
			if !got.NotBefore.Equal(c.from) || !got.NotAfter.Equal(c.to) {
				t.Errorf("from %s to %s, want from %s to %s", got.NotBefore, got.NotAfter, c.from, c.to)
			}
		})
	}
}

func TestIssueKeepsTemplate(t *testing.T) {
	issuer, key := newIssuer(t), newKey(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "somebody", Organization: []string{"group"}}, DNSNames: []string{"host.example"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	got, err := issuer.Issue(template, Terms{SerialBits: 64, Now: now, Lifetime: time.Minute}, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(issuer.Certificate)
	_, err = got.Verify(x509.VerifyOptions{
		Roots: pool, CurrentTime: now, DNSName: "host.example", KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		t.Error(err)
	}
	if got.Subject.String() != template.Subject.String() || got.KeyUsage != template.KeyUsage || got.IsCA {
		t.Errorf("%+v", got)
	}
	if template.SerialNumber != nil || !template.NotAfter.IsZero() {
		t.Error("the template was changed")
	}
	if _, err := tls.X509KeyPair(Encode(got), encodeKey(t, key)); err != nil {
		t.Errorf("as files: %v", err)
	}
}

func TestSelfSign(t *testing.T) {
	issuer := newIssuer(t)
	if err := issuer.Certificate.CheckSignatureFrom(issuer.Certificate); err != nil {
		t.Error(err)
	}
	c := issuer.Certificate
	if !c.IsCA || !c.NotBefore.Equal(second.Add(-time.Minute)) || !c.NotAfter.Equal(second.Add(time.Hour)) {
		t.Errorf("%+v", c)
	}
}

func TestSerialNumbers(t *testing.T) {
	for _, bits := range []uint{2, 120, 127, 128} {
		seen, longest := map[string]bool{}, 0
		for range 64 {
			n, err := newSerial(bits)
			if err != nil {
				t.Fatal(err)
			}
			if n.Sign() <= 0 || n.BitLen() > int(bits) || bits > 64 && seen[n.String()] {
				t.Errorf("%d bits: %s", bits, n)
			}
			seen[n.String()], longest = true, max(longest, n.BitLen())
		}
		if longest < int(bits)-10 {
			t.Errorf("%d bits: the longest of 64 has %d", bits, longest)
		}
	}
}

func TestIssueNeedsSerialBits(t *testing.T) {
	if c, err := newIssuer(t).Issue(&x509.Certificate{}, Terms{Now: now}, newKey(t).Public()); err == nil {
		t.Errorf("serial number %s", c.SerialNumber)
	}
}

func TestNewRequest(t *testing.T) {
	key := newKey(t)
	b, err := NewRequest(pkix.Name{CommonName: "somebody"}, key)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) != 0 {
		t.Fatalf("%s", b)
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckSignature(); err != nil || r.Subject.CommonName != "somebody" {
		t.Errorf("%v, %s", err, r.Subject)
	}
}

func encodeKey(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	b, err := EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The types of the blocks are those of files that were written by versions before.
func TestEncode(t *testing.T) {
	issuer := newIssuer(t)
	block, rest := pem.Decode(Encode(issuer.Certificate))
	if block == nil || block.Type != "CERTIFICATE" || !bytes.Equal(block.Bytes, issuer.Certificate.Raw) || len(rest) != 0 {
		t.Errorf("%+v", block)
	}
	block, rest = pem.Decode(encodeKey(t, issuer.Key))
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) != 0 {
		t.Fatalf("a block of type %q, and %d bytes", block.Type, len(rest))
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		t.Error(err)
	}
}

// unusual is a key of a kind that cannot be encoded, and whose type says what must not be printed.
type unusual struct{ crypto.Signer }

func TestEncodeKeyQuotesNothing(t *testing.T) {
	if _, err := EncodeKey(unusual{newKey(t)}); err == nil || strings.Contains(err.Error(), "unusual") {
		t.Errorf("%v", err)
	}
}
