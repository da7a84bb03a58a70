package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// newCA makes a CA certificate and its key, as PEM.
func newCA(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(87600 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(k); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// hostWith makes a host that does not run; it has the named machines, of which those with a "c" are control planes.
func hostWith(t *testing.T, f *fixture, names ...string) *Host {
	t.Helper()
	h := newHost(f.cfg)
	t.Cleanup(h.forker.Close)
	if err := readJSON(f.dir.ClusterFile(), &h.cluster); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		m := machineOf(n, "ok")
		m.ControlPlane = strings.Contains(n, "c")
		h.machines[n] = h.newMachine(m, netip.Addr{}, "")
	}
	return h
}

func pki(d hostapi.MachineDir) (cert, key string) {
	return d.RootFS("/etc/kubernetes/pki/ca.crt"), d.RootFS("/etc/kubernetes/pki/ca.key")
}

func TestFindCA(t *testing.T) {
	cert, key := newCA(t)
	type files struct{ cert, key []byte }
	for name, c := range map[string]struct {
		machines map[string]files
		want     string // empty: found
		none     bool   // as long as the cluster is being made
	}{
		"no machines":              {want: "no machine has", none: true},
		"only a worker":            {machines: map[string]files{"w": {cert, key}}, want: "no machine has", none: true},
		"not yet":                  {machines: map[string]files{"c": {}}, want: "no machine has", none: true},
		"not yet the key":          {machines: map[string]files{"c": {cert: cert}}, want: "ca.key", none: true},
		"there":                    {machines: map[string]files{"c": {cert, key}}},
		"on the second":            {machines: map[string]files{"c1": {}, "c2": {cert, key}}},
		"the first is broken":      {machines: map[string]files{"c1": {[]byte("x"), key}, "c2": {cert, key}}},
		"no certificate":           {machines: map[string]files{"c": {[]byte("x"), key}}, want: "ca.crt holds no certificate"},
		"a certificate of nothing": {machines: map[string]files{"c": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}), key}}, want: "ca.crt"},
		"no key":                   {machines: map[string]files{"c": {cert, []byte("x")}}, want: "ca.key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var names []string
			for n, have := range c.machines {
				names = append(names, n)
				certFile, keyFile := pki(f.dir.MachineDir(n))
				if have.cert != nil {
					f.write(t, certFile, have.cert)
				}
				if have.key != nil {
					f.write(t, keyFile, have.key)
				}
			}
			a, err := hostWith(t, f, names...).findCA()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.Is(err, errNoCA) != c.none {
				t.Errorf("%v, %v; want %q", a, err, c.want)
			}
		})
	}
}

func TestCertificates(t *testing.T) {
	f := newFixture(t)
	cert, key := newCA(t)
	certFile, keyFile := pki(f.dir.MachineDir("c"))
	h := hostWith(t, f, "c")
	if _, _, err := h.servingCertificate([]string{"n"}, netip.MustParseAddr("127.1.0.11")); !errors.Is(err, errNoCA) {
		t.Errorf("error %v", err)
	}
	if _, err := h.adminConfig(); !errors.Is(err, errNoCA) {
		t.Errorf("error %v", err)
	}
	f.write(t, certFile, cert)
	f.write(t, keyFile, key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)

	c, k, err := h.servingCertificate([]string{"n"}, netip.MustParseAddr("127.1.0.11"))
	if err != nil {
		t.Fatal(err)
	}
	serving := leaf(t, c, k)
	for _, name := range []string{"n", "127.1.0.11"} {
		if _, err := serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	if _, err := serving.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("a kubelet's port could act as somebody")
	}

	cfg, err := h.adminConfig()
	if err != nil {
		t.Fatal(err)
	}
	admin := leaf(t, cfg.CertData, cfg.KeyData)
	if _, err := admin.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if admin.Subject.Organization[0] != "kubeadm:cluster-admins" || string(cfg.CAData) != string(cert) || cfg.Host != "https://"+h.cluster.Endpoint().String() ||
		cfg.Insecure {
		t.Errorf("%v, %+v", admin.Subject, cfg)
	}
	c, k, err = h.nodeCertificate("n")
	if err != nil {
		t.Fatal(err)
	}
	node := leaf(t, c, k)
	if node.Subject.CommonName != "system:node:n" || len(node.Subject.Organization) != 1 || node.Subject.Organization[0] != "system:nodes" {
		t.Errorf("%v", node.Subject)
	}
	if _, err := node.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	renewed, err := h.renewedAdminConfig(t.Context())
	if err != nil || renewed.Host != cfg.Host || renewed.QPS != cfg.QPS || renewed.Transport == nil || renewed.Insecure {
		t.Errorf("%+v, %v", renewed, err)
	}
	for _, l := range []*x509.Certificate{serving, admin, node} {
		if l.IsCA || time.Until(l.NotAfter) > certificateLife || l.NotBefore.After(time.Now()) || l.SerialNumber.Sign() <= 0 {
			t.Errorf("%+v", l)
		}
	}
	if serving.SerialNumber.Cmp(admin.SerialNumber) == 0 {
		t.Error("two certificates have the same number")
	}
}

func leaf(t *testing.T, cert, key []byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// With the last API server there is nowhere to delete pods; that must not take long, nor fail.
func TestRemoveMirrorPodsWithoutACluster(t *testing.T) {
	f := newFixture(t)
	h := hostWith(t, f, "c")
	h.removeMirrorPods(t.Context(), "n")
	cert, key := newCA(t)
	certFile, keyFile := pki(f.dir.MachineDir("c"))
	f.write(t, certFile, cert)
	f.write(t, keyFile, key)
	begin := time.Now()
	h.removeMirrorPods(t.Context(), "n")
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}
