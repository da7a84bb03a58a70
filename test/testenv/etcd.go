package testenv

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// NewEtcdClient returns a client of a machine's etcd, with the machine's own certificates. cfg is that of the cluster. It
// ends with the test.
func NewEtcdClient(t testing.TB, cfg *rest.Config, m hostapi.MachineStatus) *clientv3.Client {
	t.Helper()
	pki := filepath.Join(m.Dir, "root/etc/kubernetes/pki/etcd")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "healthcheck-client.crt"), filepath.Join(pki, "healthcheck-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{forwardEtcd(t, cfg, m)}, DialTimeout: time.Minute, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // nothing to lose
	return c
}

// forwardEtcd makes the etcd of a machine, which is in a network of its own, one of this computer's ports, through the
// API server, as Cluster API does.
func forwardEtcd(t testing.TB, cfg *rest.Config, m hostapi.MachineStatus) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url := k.CoreV1().RESTClient().Post().Resource("pods").Namespace("kube-system").Name("etcd-" + m.Node).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), []string{"0:2379"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	t.Cleanup(func() { close(stop) })
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("forwarding to the etcd of %s: %v", m.Node, err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("https://127.0.0.1:%d", ports[0].Local)
}
