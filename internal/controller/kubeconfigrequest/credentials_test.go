package kubeconfigrequest

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// shown is what of a certificate decides about access.
type shown struct {
	Name     string
	Groups   []string
	From, To time.Time
	Usage    x509.KeyUsage
	Ext      []x509.ExtKeyUsage
	CA       bool
	Others   int // names of other kinds
}

func show(c *x509.Certificate) shown {
	return shown{c.Subject.CommonName, c.Subject.Organization, c.NotBefore, c.NotAfter, c.KeyUsage, c.ExtKeyUsage, c.IsCA,
		len(c.DNSNames) + len(c.IPAddresses) + len(c.EmailAddresses) + len(c.URIs) + len(c.Subject.Names) - 2}
}

func TestSignCertificate(t *testing.T) {
	second := at.Truncate(time.Second)
	want := func(change func(*shown)) shown {
		s := shown{
			Name: "polder:" + requester, Groups: []string{"polder:admin"}, From: second.Add(-5 * time.Minute), To: second.Add(time.Hour),
			Usage: x509.KeyUsageDigitalSignature, Ext: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		change(&s)
		return s
	}
	long := strings.Repeat("u", maxUsername)
	for title, c := range map[string]struct {
		change func(*credentialSpec)
		want   shown
	}{
		"admin":                     {func(*credentialSpec) {}, want(func(*shown) {})},
		"viewer":                    {func(o *credentialSpec) { o.role = v1alpha1.RoleViewer }, want(func(s *shown) { s.Groups = []string{"polder:viewer"} })},
		"a name as Kubernetes' own": {func(o *credentialSpec) { o.username = "system:masters" }, want(func(s *shown) { s.Name = "polder:system:masters" })},
		"a name like a subject":     {func(o *credentialSpec) { o.username = "x,O=system:masters" }, want(func(s *shown) { s.Name = "polder:x,O=system:masters" })},
		"a long name":               {func(o *credentialSpec) { o.username = long }, want(func(s *shown) { s.Name = "polder:" + long })},
		"an authority that ends sooner": {
			func(o *credentialSpec) {
				o.authority = newAuthority(t, func(c *x509.Certificate) { c.NotAfter = at.Add(10 * time.Minute) })
			},
			want(func(s *shown) { s.To = second.Add(10 * time.Minute) }),
		},
	} {
		t.Run(title, func(t *testing.T) {
			o := newCredentialSpec(t)
			c.change(o)
			key, _ := newKey(t)
			got, err := o.signCertificate(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, show(got)); d != "" {
				t.Error(d)
			}
			if !key.PublicKey.Equal(got.PublicKey) {
				t.Error("it is for another key")
			}
			pool := x509.NewCertPool()
			pool.AddCert(o.authority.certificate)
			if _, err := got.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// sign signs any certificate, as somebody could who has the authority.
func sign(t *testing.T, o *credentialSpec, a *authority, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	key, _ := newKey(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: o.subject(), NotBefore: at.Add(-time.Minute), NotAfter: at.Add(time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCredentialSpecMatches(t *testing.T) {
	o := newCredentialSpec(t)
	for title, c := range map[string]struct {
		change func(*x509.Certificate)
		want   bool
	}{
		"as we make it":  {func(*x509.Certificate) {}, true},
		"another user":   {func(c *x509.Certificate) { c.Subject.CommonName = "polder:bob" }, false},
		"another group":  {func(c *x509.Certificate) { c.Subject.Organization = []string{"system:masters"} }, false},
		"one group more": {func(c *x509.Certificate) { c.Subject.Organization = append(c.Subject.Organization, "system:masters") }, false},
		"more in a name": {func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: c.Subject.CommonName, Organization: c.Subject.Organization, Country: []string{"NL"}}
		}, false},
		"over":            {func(c *x509.Certificate) { c.NotAfter = at.Add(-time.Second) }, false},
		"not yet":         {func(c *x509.Certificate) { c.NotBefore = at.Add(10 * time.Second) }, false},
		"for too long":    {func(c *x509.Certificate) { c.NotAfter = at.Add(2 * time.Hour) }, false},
		"an authority":    {func(c *x509.Certificate) { c.IsCA = true }, false},
		"for servers too": {func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) }, false},
	} {
		t.Run(title, func(t *testing.T) {
			if got := o.matches(sign(t, o, o.authority, c.change)); got != c.want {
				t.Errorf("fits: %v, want %v", got, c.want)
			}
		})
	}
	if o.matches(sign(t, o, newAuthority(t, nil), func(*x509.Certificate) {})) {
		t.Error("a certificate of another authority fits")
	}
}

func TestKeysAreNotPrinted(t *testing.T) {
	o := newCredentialSpec(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		if got := fmt.Sprintf(verb, o.authority); got != "***" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}
