package kubeconfigrequest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

func ecKey(t *testing.T, c elliptic.Curve) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// greedy requests everything that must not be granted.
func greedy(r *x509.CertificateRequest) {
	r.Subject = pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}
	r.DNSNames = []string{"kubernetes.default"}
	ca, _ := asn1.Marshal(struct{ IsCA bool }{true})
	r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: ca}}
}

func TestParseCSRPublicKey(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for title, key := range map[string]crypto.Signer{
		"P-256": ecKey(t, elliptic.P256()), "P-384": ecKey(t, elliptic.P384()), "P-521": ecKey(t, elliptic.P521()),
		"RSA of 2048 bits": rsaKey(t, 2048), "Ed25519": ed,
	} {
		t.Run(title, func(t *testing.T) {
			for _, text := range []string{newCSR(t, key, nil), newCSR(t, key, greedy), "\n \r\n" + newCSR(t, key, nil) + "\n\n"} {
				got, err := parseCSRPublicKey(text)
				if err != nil {
					t.Fatal(err)
				}
				if !key.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(got) {
					t.Errorf("got another key than the one that was sent")
				}
			}
		})
	}
}

func TestParseCSRPublicKeyRefuses(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	good := newCSR(t, key, nil)
	body := func(text string) []byte { b, _ := pem.Decode([]byte(text)); return b.Bytes }
	armour := func(kind string, der []byte, headers map[string]string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der, Headers: headers}))
	}
	forged := bytes.Clone(body(good))
	forged[len(forged)-1] ^= 1 // in the signature
	// The signature of another key over another request.
	stolen := bytes.Replace(body(newCSR(t, key, func(r *x509.CertificateRequest) { r.Subject.CommonName = "aaaa" })), []byte("aaaa"), []byte("bbbb"), 1)
	weak := body(newCSR(t, rsaKey(t, 1024), nil))
	weak[len(weak)-1] ^= 1
	for title, c := range map[string]struct{ text, want string }{
		"nothing":             {"", "one block"},
		"garbage":             {"not PEM at all", "one block"},
		"a block cut short":   {good[:len(good)/2], "PEM block"},
		"text before":         {"hello\n" + good, "one block"},
		"text after":          {good + "hello", "PEM block"},
		"two blocks":          {good + good, "one block"},
		"two blocks, one bad": {good + "-----BEGIN X-----\n", "one block"},
		"another block":       {armour("NEW CERTIFICATE REQUEST", body(good), nil), "one block"},
		"headers":             {armour(csrPEMType, body(good), map[string]string{"Proc-Type": "4,ENCRYPTED"}), "headers"},
		"empty block":         {armour(csrPEMType, nil, nil), "PKCS #10"},
		"no DER":              {armour(csrPEMType, []byte("hello"), nil), "PKCS #10"},
		"more after the DER":  {armour(csrPEMType, append(bytes.Clone(body(good)), 0), nil), "PKCS #10"},
		"forged signature":    {armour(csrPEMType, forged, nil), "signature"},
		"changed subject":     {armour(csrPEMType, stolen, nil), "signature"},
		"too large":           {good + strings.Repeat("\n", maxCSRBytes), "may have 16384"},
		"weak RSA":            {newCSR(t, rsaKey(t, 1024), nil), "1024 bits"},
		"weak RSA, forged":    {armour(csrPEMType, weak, nil), "1024 bits"}, // the signature is checked last
		"weak curve":          {newCSR(t, ecKey(t, elliptic.P224()), nil), "curve"},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := parseCSRPublicKey(c.text)
			if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// checkKey needs no signature: checking one with such a key is what takes long.
func TestHugeKeysAreNotChecked(t *testing.T) {
	n := bytes.Repeat([]byte{0xff}, maxRSA/8+1)
	k := &rsa.PublicKey{E: 65537}
	k.N = new(big.Int).SetBytes(n)
	if err := checkKey(k); err == nil || !strings.Contains(err.Error(), "8200 bits") {
		t.Errorf("got %v", err)
	}
	if err := checkKey("a string"); err == nil {
		t.Error("a key of an unknown kind is taken")
	}
}

// Every accepted key is small enough, proven, and strong.
func FuzzParseCSRPublicKey(f *testing.F) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k)
	if err != nil {
		f.Fatal(err)
	}
	good := string(pem.EncodeToMemory(&pem.Block{Type: csrPEMType, Bytes: der}))
	for _, s := range []string{"", good, good + good, good[:40], "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n",
		"-----BEGIN CERTIFICATE REQUEST-----\nAA: b\n\nAAAA\n-----END CERTIFICATE REQUEST-----"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseCSRPublicKey(text)
		if (key == nil) != (err != nil) {
			t.Fatalf("a key %v with error %v", key, err)
		}
		if err != nil {
			if len(err.Error()) > 200 {
				t.Errorf("the error quotes too much: %s", err)
			}
			return
		}
		if len(text) > maxCSRBytes || strings.Count(text, "-----BEGIN") != 1 || checkKey(key) != nil {
			t.Errorf("this was taken: %q", text)
		}
	})
}
