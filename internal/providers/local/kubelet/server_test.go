package kubelet

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// testCA signs certificates for tests.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &testCA{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *testCA) signClient(t *testing.T, name string, usage x509.ExtKeyUsage) []tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: []string{"kubeadm:cluster-admins"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
}

// startServing starts the kubelet's port, and then gives the machine its CA certificate.
func startServing(t *testing.T, k *Kubelet, a *testCA) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.runWithRetry(ctx, "kubelet endpoint", k.serve) }()
	t.Cleanup(func() { cancel(); <-done })
	file := k.cfg.Dir.RootFS("/etc/kubernetes/pki/ca.crt") // comes later
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, a.pem, 0o600)); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it listens", func() bool {
		c, err := net.Dial("tcp", netip.AddrPortFrom(k.cfg.Address, Port).String())
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

func TestOnlyTheAPIServerMayAsk(t *testing.T) {
	ours, others := newTestCA(t), newTestCA(t)
	k := newKubelet(t)
	startServing(t, k, ours)
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         string
	}{
		"an API server":                     {ours.signClient(t, apiServerClientName, x509.ExtKeyUsageClientAuth), "200 ok"},
		"a node":                            {ours.signClient(t, "system:node:node-1", x509.ExtKeyUsageClientAuth), `403 "system:node:node-1" may not ask`},
		"an administrator":                  {ours.signClient(t, "kubernetes-admin", x509.ExtKeyUsageClientAuth), "403"},
		"nobody":                            {nil, "certificate required"},
		"an API server of another cluster":  {others.signClient(t, apiServerClientName, x509.ExtKeyUsageClientAuth), "certificate"},
		"a server of that name":             {ours.signClient(t, apiServerClientName, x509.ExtKeyUsageServerAuth), "bad certificate"},
		"one whose name only begins so":     {ours.signClient(t, apiServerClientName+"-2", x509.ExtKeyUsageClientAuth), "403"},
		"one that has it as name of a host": {ours.signClient(t, "", x509.ExtKeyUsageClientAuth), "403"},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: c.certificates}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
			got := ""
			if res, err := client.Get("https://" + netip.AddrPortFrom(k.cfg.Address, Port).String() + "/healthz"); err != nil {
				got = err.Error()
			} else {
				b, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				got = fmt.Sprintf("%d %s", res.StatusCode, b)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestServingCertificate(t *testing.T) {
	k := newKubelet(t)
	for name, serving := range map[string]func([]string, netip.Addr) ([]byte, []byte, error){
		"none to be had": nil,
		"not yet":        func([]string, netip.Addr) ([]byte, []byte, error) { return nil, nil, errors.New("not yet") },
	} {
		k.cfg.ServingCertificate = serving
		c, err := k.servingCertificate()
		if err != nil {
			t.Fatal(name, err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil || leaf.VerifyHostname("node-1") != nil || leaf.VerifyHostname(testAddress().String()) != nil {
			t.Errorf("%s: %v, for %v and %v", name, err, leaf.DNSNames, leaf.IPAddresses)
		}
	}
	k.cfg.ServingCertificate = func([]string, netip.Addr) ([]byte, []byte, error) { return []byte("x"), []byte("y"), nil }
	if _, err := k.servingCertificate(); err == nil {
		t.Error("a certificate that is none was taken")
	}
}

// The certificate of the port and that of the node are made anew when they are due, while they are in use.
func TestCertificatesAreRenewed(t *testing.T) {
	a := newTestCA(t)
	k := newKubelet(t)
	c := clocktesting.NewFakeClock(time.Now())
	k.cfg.Clock = c
	made := 0
	k.cfg.ServingCertificate = func(names []string, _ netip.Addr) (cert, key []byte, err error) {
		made++
		return selfSigned(t, fmt.Sprint(names[0], " ", made), c.Now())
	}
	startServing(t, k, a)
	shown := func() string {
		conn, err := tls.Dial("tcp", netip.AddrPortFrom(k.cfg.Address, Port).String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "node-1 1"}, {19 * time.Hour, "node-1 1"}, {2 * time.Hour, "node-1 2"}, {time.Hour, "node-1 2"}} {
		c.Step(step.after)
		if got := shown(); got != step.want {
			t.Errorf("after another %s: %q, want %q", step.after, got, step.want)
		}
	}
}

func TestNodeCertificate(t *testing.T) {
	k := newKubelet(t)
	c := clocktesting.NewFakeClock(time.Now())
	k.cfg.Clock = c
	cert, key, err := selfSigned(t, "booted", c.Now())
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: cert, KeyData: key}}
	other := func(node string) ([]byte, []byte, error) { return selfSigned(t, "renewed "+node, c.Now()) }
	none := func(string) ([]byte, []byte, error) { return nil, nil, errors.New("no authority") }
	for _, step := range []struct {
		name  string
		after time.Duration
		issue func(string) ([]byte, []byte, error)
		want  string
	}{
		{"not due", time.Hour, other, "booted"},
		{"due", 20 * time.Hour, other, "renewed node-1"},
		{"due, without an authority", 0, none, "booted"},
		{"due, without a host", 0, nil, "booted"},
	} {
		c.Step(step.after)
		k.cfg.ClientCertificate = step.issue
		if got, err := k.nodeCertificate(cfg); err != nil || got.Leaf.Subject.CommonName != step.want {
			t.Errorf("%s: another certificate than %q, %v", step.name, step.want, err)
		}
	}
	if _, err := k.nodeCertificate(&rest.Config{}); err == nil || !strings.Contains(err.Error(), "kubelet.conf") {
		t.Errorf("without a certificate: %v", err)
	}
}

// selfSigned makes a certificate that is good for thirty hours.
func selfSigned(t *testing.T, name string, now time.Time) (cert, key []byte, err error) {
	t.Helper()
	k, err := certificate.NewKey()
	if err != nil {
		return nil, nil, err
	}
	c, err := certificate.SelfSign(&x509.Certificate{Subject: pkix.Name{CommonName: name}}, certificate.Terms{SerialBits: 64, Now: now, Lifetime: 30 * time.Hour}, k)
	if err != nil {
		return nil, nil, err
	}
	key, err = certificate.EncodeKey(k)
	return certificate.Encode(c), key, err
}

func TestInvalidCA(t *testing.T) {
	k := newKubelet(t)
	file := k.cfg.Dir.RootFS("/etc/kubernetes/pki/ca.crt")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := k.serve(t.Context()); err == nil || !strings.Contains(err.Error(), "ca.crt holds no certificate") {
		t.Errorf("error %v", err)
	}
}

func TestRefusals(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	syncPods(t, k)
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/exec/kube-system/etcd-node-1/etcd?command=sh", "501 this is a simulated machine: there is no container to exec in"},
		{"GET", "/exec/default/p/c", "501"},
		{"POST", "/attach/default/p/c", "501"},
		{"POST", "/run/default/p/c", "501"},
		{"POST", "/portForward/default/p", "501 pod default/p is simulated: nothing listens in it"},
		{"POST", "/portForward/default/p/uid", "501"},
		{"POST", "/portForward/kube-system/etcd-node-2", "501"},
		{"GET", "/pods", "404 a simulated machine does not answer /pods"},
		{"GET", "/metrics", "404"},
		{"GET", "/configz", "404"},
		{"POST", "/containerLogs/default/p/c", "404"},
		{"POST", "/healthz", "404"},
		{"GET", "/healthz", "200 ok"},
	} {
		w := httptest.NewRecorder()
		k.handler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestPortForward(t *testing.T) {
	k := newKubelet(t)
	l, err := net.Listen("tcp", netip.AddrPortFrom(testAddress(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "you said "+line)
		_ = c.Close()
	}()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- k.PortForward(t.Context(), "", "", int32(l.Addr().(*net.TCPAddr).Port), theirs) }()
	_, _ = io.WriteString(ours, "hello\n")
	if b, err := io.ReadAll(ours); err != nil || string(b) != "you said hello\n" {
		t.Errorf("%q, %v", b, err)
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	_, theirs = net.Pipe()
	if err := k.PortForward(t.Context(), "", "", int32(freePort(t)), theirs); err == nil {
		t.Error("nobody listens, and no error")
	}
}

// A machine without anything is kept quietly until it ends.
func TestRunOfAnEmptyMachine(t *testing.T) {
	for name, controlPlane := range map[string]bool{"control plane": true, "worker": false} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			k.cfg.Machine.ControlPlane = controlPlane
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); k.Run(ctx) }()
			cancel()
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				t.Fatal("it does not end")
			}
			if all, registered, problem := k.Status(); len(all) > 0 || registered || problem != "" {
				t.Errorf("%v, %t, %q", all, registered, problem)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	k := newKubelet(t)
	changes := 0
	k.cfg.OnChange = func() { changes++ }
	for _, c := range []struct {
		part    string
		err     error
		want    string
		changes int
	}{
		{"node", errors.New("a"), "node: a", 1},
		{"node", errors.New("a"), "node: a", 1},
		{"static pods", errors.New("b"), "static pods: b", 2},
		{"static pods", nil, "node: a", 3},
		{"node", nil, "", 4},
		{"kubelet endpoint", nil, "", 4},
	} {
		k.setProblem(c.part, c.err)
		if _, _, got := k.Status(); got != c.want || changes != c.changes {
			t.Errorf("after %s %v: %q, %d changes; want %q, %d", c.part, c.err, got, changes, c.want, c.changes)
		}
	}
}
