package customer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// customerNamespace makes a namespace that is a customer's, with these labels beside.
func customerNamespace(t *testing.T, c client.Client, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "customer-", Labels: map[string]string{"polder.dev/customer": "acme"}}}
	for k, v := range labels {
		ns.Labels[k] = v
	}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// clientOf is a client of a user who has the rights of a ClusterRole in one namespace, and none elsewhere.
func clientOf(t *testing.T, p *testenv.Plane, ns, user, role string) client.Client {
	t.Helper()
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user + "@" + ns}},
	}
	if err := p.Client(t).Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	cfg := p.RESTConfig(t)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user + "@" + ns, Groups: []string{"system:authenticated"}}
	c := testenv.NewClient(t, cfg)
	testenv.Eventually(t, soon, func() error { // until the API server knows the binding
		return c.List(t.Context(), &corev1.EventList{}, client.InNamespace(ns))
	})
	return c
}

const kubeconfigOfCluster = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: Y2E=}}]
users: [{name: c, user: {client-certificate-data: YQ==, client-key-data: Yg==}}]
`

// TestClusterSecrets writes Secrets that Cluster API would read, as the administrator: what could make the plane do
// something for its writer is refused, whatever type and labels it has, and nothing else is.
func TestClusterSecrets(t *testing.T) {
	p := shared.Get(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	changed := func(from, to string) string {
		if !strings.Contains(kubeconfigOfCluster, from) {
			t.Fatalf("there is no %q", from)
		}
		return strings.Replace(kubeconfigOfCluster, from, to, 1)
	}
	const key = "client-key-data: Yg=="
	made := 0
	for name, s := range map[string]struct{ secret, key, value, want string }{
		"a sound one":             {"a-kubeconfig", "value", kubeconfigOfCluster, ""},
		"a program":               {"b-kubeconfig", "value", changed(key, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"), "it runs a program (exec)"},
		"an auth provider":        {"b-kubeconfig", "value", changed(key, "auth-provider: {name: gcp}"), "auth-provider"},
		"a token in a file":       {"b-kubeconfig", "value", changed(key, "tokenFile: /etc/passwd"), "it names a file"},
		"a key in a file":         {"b-kubeconfig", "value", changed(key, "client-key: ../pki/admin.pem"), "it names a file"},
		"a certificate in a file": {"b-kubeconfig", "value", changed("client-certificate-data: YQ==", "client-certificate: /etc/passwd"), "it names a file"},
		"an authority in a file":  {"b-kubeconfig", "value", changed("certificate-authority-data: Y2E=", "certificate-authority: /etc/passwd"), "certificate-authority"},
		"any server":              {"b-kubeconfig", "value", changed("certificate-authority-data: Y2E=", "insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"},
		"a proxy":                 {"b-kubeconfig", "value", changed("certificate-authority-data", "proxy-url: http://192.0.2.2, certificate-authority-data"), "proxy-url"},
		"a socket":                {"b-kubeconfig", "value", changed("https://192.0.2.1:6443", "unix:///run/etcd.sock"), "not an https URL"},
		"without encryption":      {"b-kubeconfig", "value", changed("https://", "http://"), "not an https URL"},
		"somebody else":           {"b-kubeconfig", "value", changed(key, key+", as: system:admin"), "impersonates"},
		"no kubeconfig":           {"b-kubeconfig", "value", "\x00", "the kubeconfig"},
		"another key":             {"c-kubeconfig", "other", "tokenFile", ""},
		"another name":            {"kubeconfig-c", "value", changed(key, "tokenFile: /etc/passwd"), ""},
		"a file in an authority":  {"d-ca", "tls.crt", "x\r-   path: /etc/kubernetes/manifests/evil.yaml", "a character that PEM does not have"},
		"a file in a key":         {"d-sa", "tls.key", "x\u2028-   path: /evil", "a character that PEM does not have"},
		"an authority":            {"d-etcd", "tls.crt", "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: s.secret}, Data: map[string][]byte{s.key: []byte(s.value)}}
			check := func(how string, err error) {
				t.Helper()
				if s.want == "" && err != nil || s.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), s.want)) {
					t.Errorf("%s: %v; want %q", how, err, s.want)
				}
				if err != nil && strings.Contains(err.Error(), "Yg==") {
					t.Errorf("%s: a key is quoted: %v", how, err)
				}
			}
			check("created", c.Create(t.Context(), o.DeepCopy(), client.DryRunAll))
			o.Type, o.Labels = clusterv1.ClusterSecretType, map[string]string{clusterv1.ClusterNameLabel: "x"}
			check("created with type and label", c.Create(t.Context(), o.DeepCopy(), client.DryRunAll))
			there := o.DeepCopy()
			made++
			there.Name, there.Data = fmt.Sprintf("s%d-%s", made, o.Name), nil
			if err := c.Create(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			there.Data = o.Data
			check("updated", c.Update(t.Context(), there))
		})
	}
}

// TestCustomersWriteNoClusterSecrets shows that in the namespace of a customer only the plane writes what clusters are
// made of, even if he has all rights there. Bootstrap data are such Secrets too, under any name.
func TestCustomersWriteNoClusterSecrets(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns := customerNamespace(t, admin, nil)
	customer := clientOf(t, p, ns, "alice", "cluster-admin")
	secret := func(name, key string, kind corev1.SecretType) *corev1.Secret {
		value := "x"
		if key == "value" && strings.HasSuffix(name, "-kubeconfig") {
			value = kubeconfigOfCluster
		}
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Type: kind, Data: map[string][]byte{key: []byte(value)}}
	}
	refused := func(err error) error {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "are written by the plane alone in the namespace of a customer") {
			return fmt.Errorf("it got: %w", errors.Join(err, errors.New("want a refusal")))
		}
		return nil
	}
	for _, o := range []*corev1.Secret{
		secret("a-kubeconfig", "value", ""), secret("a-ca", "tls.crt", ""), secret("a-etcd", "tls.crt", ""), secret("a-sa", "tls.crt", ""),
		secret("a-proxy", "tls.crt", ""), secret("a-apiserver-etcd-client", "tls.crt", ""), secret("a-x7k2p", "value", clusterv1.ClusterSecretType),
	} {
		testenv.Eventually(t, soon, func() error { return refused(customer.Create(t.Context(), o.DeepCopy(), client.DryRunAll)) })
		made := o.DeepCopy()
		if err := admin.Create(t.Context(), made); err != nil {
			t.Fatalf("the platform operator, %s: %v", o.Name, err)
		}
		made.Data["x"] = []byte("y")
		if err := refused(customer.Update(t.Context(), made)); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	for _, o := range []*corev1.Secret{secret("mine", "value", ""), secret("registry-ca", "ca.crt", ""), secret("my-kubeconfig", "config", "")} {
		if err := customer.Create(t.Context(), o); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
}
