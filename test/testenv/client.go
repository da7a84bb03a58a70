package testenv

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// RESTConfig is the administrator's access to the plane.
func (p *Plane) RESTConfig(t testing.TB) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.Data, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

// Client is the administrator's client for Kubernetes' and Cluster API's kinds.
func (p *Plane) Client(t testing.TB) client.Client {
	t.Helper()
	return NewClient(t, p.RESTConfig(t))
}

// NewClient is a client with cfg's rights.
func NewClient(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Scheme has the kinds of Kubernetes, Cluster API and Polder.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme,
		controlplanev1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme, csv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// CreateNamespace makes a namespace for one test; it goes with the plane.
func (p *Plane) CreateNamespace(t testing.TB) string {
	t.Helper()
	c := p.Client(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(fmt.Errorf("making a namespace: %w", err))
	}
	return ns.Name
}

// GetPath reads a path of the API server as the administrator.
func (p *Plane) GetPath(t testing.TB, path string) string {
	t.Helper()
	cfg := p.RESTConfig(t)
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, res.Status, err)
	}
	return string(b)
}
