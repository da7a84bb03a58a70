package kubeconfigrequest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestAuthorityFromSecrets(t *testing.T) {
	crt, key := newPair(t, nil)
	otherCrt, otherKey := newPair(t, nil)
	pair := func(change func(*x509.Certificate)) [2][]byte { c, k := newPair(t, change); return [2][]byte{c, k} }
	for title, c := range map[string]struct {
		pair  [2][]byte // of the authority
		trust []byte    // of the kubeconfig; nil: the same
		want  string    // of the obstacle; empty if there is none
	}{
		"as Cluster API makes it": {pair: [2][]byte{crt, key}},
		"one of many":             {pair: [2][]byte{crt, key}, trust: append(bytes.Clone(otherCrt), crt...)},
		"text around it":          {pair: [2][]byte{append([]byte("hello\n"), crt...), key}, trust: crt},
		"another is trusted":      {pair: [2][]byte{crt, key}, trust: otherCrt, want: "does not trust"},
		"no key":                  {pair: [2][]byte{crt, nil}, want: "kept elsewhere"},
		"another's key":           {pair: [2][]byte{crt, otherKey}, want: "do not belong together"},
		"garbage as key":          {pair: [2][]byte{crt, []byte("SECRETGARBAGE")}, want: "cannot be read"},
		"garbage as certificate":  {pair: [2][]byte{[]byte("SECRETGARBAGE"), key}, trust: crt, want: "cannot be read"},
		"too large": {pair: [2][]byte{append(bytes.Clone(crt), bytes.Repeat([]byte("\n"), maxAuthorityBytes)...), key}, trust: crt,
			want: "more than 65536 bytes"},
		"no authority":                {pair: pair(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, 0 }), want: "not that of an authority"},
		"an authority for nothing":    {pair: pair(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), want: "not that of an authority"},
		"one whose time is over":      {pair: pair(func(c *x509.Certificate) { c.NotAfter = at.Add(-time.Second) }), want: "has ended at 2030-01-02T03:04:04Z"},
		"one whose time is to come":   {pair: pair(func(c *x509.Certificate) { c.NotBefore = at.Add(time.Hour) }), want: "not valid before"},
		"a kubeconfig without a CA":   {pair: [2][]byte{crt, key}, trust: []byte{}, want: "certificate-authority-data"},
		"a kubeconfig full of others": {pair: [2][]byte{crt, key}, trust: append([]byte("hello"), otherCrt...), want: "does not trust"},
	} {
		t.Run(title, func(t *testing.T) {
			trusted := c.trust
			if trusted == nil {
				trusted = c.pair[0]
			}
			ca, own := newSecrets(t, trusted, c.pair[1])
			ca.Data["tls.crt"] = c.pair[0]
			a, o := authorityFromSecrets(name, ca, own, at)
			if (a == nil) == (o == nil) || (o == nil) != (c.want == "") {
				t.Fatalf("authority %v, obstacle %v", a, o)
			}
			if o == nil {
				block, rest := pem.Decode(a.bundle)
				if block == nil || len(rest) > 0 || !bytes.HasPrefix(a.bundle, []byte("-----BEGIN CERTIFICATE")) {
					t.Errorf("the bundle is\n%s", a.bundle)
				}
				return
			}
			if !strings.Contains(o.message, c.want) || o.reason != v1alpha1.ReasonClusterNotReady || o.requeueAfter != pollDelay {
				t.Errorf("obstacle %+v, want %q", o, c.want)
			}
			if strings.Contains(o.message, "SECRETGARBAGE") || leaks(o.message, key) || leaks(o.message, otherKey) {
				t.Errorf("%s quotes a key", o.message)
			}
		})
	}
}

func TestAuthorityNeedsBothSecrets(t *testing.T) {
	ca, own := newSecrets(t, nil, nil)
	for _, pair := range [][2]*corev1.Secret{{nil, own}, {ca, nil}} {
		if _, o := authorityFromSecrets(name, pair[0], pair[1], at); o == nil || !strings.Contains(o.message, "prod-ca and prod-kubeconfig") ||
			o.requeueAfter != pollDelay {
			t.Errorf("obstacle %+v", o)
		}
	}
}

// leaks reports whether a text has a part of a private key, as it is in PEM form, even if that is encoded once or twice
// more.
func leaks(text string, key []byte) bool {
	block, _ := pem.Decode(key)
	var k any
	if k, _ = x509.ParsePKCS8PrivateKey(block.Bytes); k == nil {
		k, _ = x509.ParseECPrivateKey(block.Bytes)
	}
	scalar, _ := k.(*ecdsa.PrivateKey).Bytes()
	encode := func(s string) (out []string) {
		for pad := range 3 { // it may begin anywhere
			out = append(out, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad)+s)))
		}
		return out
	}
	var forms []string
	for _, form := range encode(string(scalar)) {
		forms = append(forms, form[4:22], form[22:40]) // one of them is on one line
	}
	for _, once := range slices.Clone(forms) {
		for _, twice := range encode(once) {
			forms = append(forms, twice[4:len(twice)-4])
			for _, thrice := range encode(twice[4 : len(twice)-4]) {
				forms = append(forms, thrice[4:len(thrice)-4])
			}
		}
	}
	return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
}

func TestLeaks(t *testing.T) {
	_, a := newKey(t)
	_, b := newKey(t)
	once := "0" + base64.StdEncoding.EncodeToString(append([]byte("key: "), a...))
	for _, text := range []string{string(a), once, base64.StdEncoding.EncodeToString([]byte(once))} {
		if !leaks(text, a) || leaks(text, b) {
			t.Errorf("not found, or wrongly, in %s", text)
		}
	}
}
