package provider

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/instant/world"
)

// Whoever is master of a workload cluster, and has its authority, is nobody in the plane: the plane knows neither the
// authority's certificates nor a header that names somebody.
func TestWorkloadCredentialsAreNoneOfThePlane(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.cluster("credentials", 0)
	g.await("credentials", ready)
	plane := shared.Get(t).RESTConfig(t)
	anonymous := rest.AnonymousClientConfig(plane)
	attempts := map[string]func(*rest.Config){
		"its administrator": func(c *rest.Config) {
			admin := workloadAdmin(t, g, "credentials")
			c.CertData, c.KeyData = admin.CertData, admin.KeyData
		},
		"its authority signs an administrator of the plane": func(c *rest.Config) {
			c.CertData, c.KeyData = signedByWorkload(t, g, "credentials", "polder-admin", "system:masters")
		},
		"its authority signs the operator": func(c *rest.Config) {
			c.CertData, c.KeyData = signedByWorkload(t, g, "credentials", "system:polder:operator", "system:masters")
		},
		"impersonation": func(c *rest.Config) {
			admin := workloadAdmin(t, g, "credentials")
			c.CertData, c.KeyData = admin.CertData, admin.KeyData
			c.Impersonate = rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}
		},
		"a token of the bootstrap kind": func(c *rest.Config) { c.BearerToken = "abcdef.0123456789abcdef" },
		"a token that nobody signed":    func(c *rest.Config) { c.BearerToken = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ." },
	}
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			c := rest.CopyConfig(anonymous)
			attempt(c)
			k, err := kubernetes.NewForConfig(c)
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.CoreV1().Secrets(g.ns).List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
				t.Errorf("the plane answers %v", err)
			}
		})
	}
	// The test must be able to fail: with the plane's own credentials the same is allowed.
	k, err := kubernetes.NewForConfig(plane)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.CoreV1().Secrets(g.ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the administrator of the plane: %v", err)
	}
}

// workloadAdmin is what the kubeconfig of a workload cluster has.
func workloadAdmin(t *testing.T, g *ground, name string) *rest.Config {
	t.Helper()
	s := &corev1.Secret{}
	if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: name + "-kubeconfig"}, s); err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	if err != nil || len(c.CertData) == 0 {
		t.Fatalf("no certificate, %v", err)
	}
	return c
}

// signedByWorkload is a certificate of the workload cluster's own authority.
func signedByWorkload(t *testing.T, g *ground, name, user, group string) (cert, key []byte) {
	t.Helper()
	s := &corev1.Secret{}
	if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: name + "-ca"}, s); err != nil {
		t.Fatal(err)
	}
	ca, err := world.ReadAuthority(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if cert, key, err = ca.IssueClientCertificate(user, group); err != nil {
		t.Fatal(err)
	}
	return cert, key
}
