package fault

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// TestRotation runs a plane with certificates that live two minutes: they must be renewed before
// they expire, and no request may fail meanwhile, not even one that needs a webhook.
func TestRotation(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.Start(t, "--certificate-lifetime", "2m")
	p.AwaitReady(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, p.Client(t), ns)
	seen := map[string]bool{}
	requests := 0
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		c := serving(t, p)
		seen[c.SerialNumber.String()] = true
		if left := time.Until(c.NotAfter); left < 10*time.Second {
			t.Fatalf("the served certificate ends in %s", left)
		}
		k, err := kubernetes.NewForConfig(p.RESTConfig(t)) // a new client with the present kubeconfig
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatalf("request %d: %v", requests, err)
		}
		u := testenv.StubCluster(t, ns, "rotation")
		if err := p.Client(t).Create(t.Context(), u, client.DryRunAll); err != nil {
			t.Fatalf("request %d through a webhook: %v", requests, err)
		}
		requests++
		<-time.After(500 * time.Millisecond)
	}
	if len(seen) < 3 || len(seen) > 6 { // one every 80 seconds
		t.Errorf("saw %d certificates in 5 minutes", len(seen))
	}
	t.Logf("%d requests, none failed, over %d certificates", requests, len(seen))
}

// serving is the certificate the API presents now.
func serving(t *testing.T, p *testenv.Plane) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", p.Address(t), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}
