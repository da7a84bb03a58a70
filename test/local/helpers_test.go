package local

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func convert(t *testing.T, u *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		t.Fatal(err)
	}
}

// kill ends a process as a power failure would.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("process %d is not one to kill", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// process finds a running process of some control-plane machine.
func process(t *testing.T, s hostapi.Status, name string) (hostapi.MachineStatus, hostapi.ProcessStatus) {
	t.Helper()
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			if p.Name == name && p.PID != 0 {
				return m, p
			}
		}
	}
	t.Fatalf("no machine runs %s: %+v", name, s)
	return hostapi.MachineStatus{}, hostapi.ProcessStatus{}
}

// forwardEtcd makes the etcd of a machine, which is in a network of its own, one of this computer's ports, through the
// API server, as Cluster API does.
func forwardEtcd(t *testing.T, c *cluster, m hostapi.MachineStatus) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(c.config(t))
	if err != nil {
		t.Fatal(err)
	}
	url := c.workload(t).CoreV1().RESTClient().Post().Resource("pods").Namespace("kube-system").Name("etcd-" + m.Node).SubResource("portforward").URL()
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

// members asks a machine's etcd for its members, with the machine's own certificates.
func members(t *testing.T, cl *cluster, m hostapi.MachineStatus) []string {
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
		Endpoints: []string{forwardEtcd(t, cl, m)}, DialTimeout: time.Minute, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range r.Members {
		if !x.IsLearner {
			names = append(names, x.Name)
		}
	}
	return names
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}
