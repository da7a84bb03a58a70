package capi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capikubeconfig "sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const soundKubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: Y2E=}}]
users: [{name: c, user: {client-certificate-data: YQ==, client-key-data: Yg==}}]
`

// As ClusterCache reads it: by Cluster API's own function.
func TestKubeconfigSecrets(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"a sound one":              {"", "", ""},
		"a token":                  {"client-key-data: Yg==", "client-key-data: Yg==, token: t", ""},
		"a token in a file":        {"client-key-data: Yg==", "tokenFile: /etc/passwd", "names a file"},
		"a certificate in a file":  {"client-certificate-data: YQ==", "client-certificate: /etc/passwd", "names a file"},
		"a key in a file":          {"client-key-data: Yg==", "client-key: ../pki/admin.pem", "names a file"},
		"an authority in a file":   {"certificate-authority-data: Y2E=", "certificate-authority: /etc/passwd", "certificate-authority"},
		"any server":               {"certificate-authority-data: Y2E=", "insecure-skip-tls-verify: true", "does not verify the server"},
		"a program":                {"client-key-data: Yg==", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "runs a program"},
		"a proxy":                  {"certificate-authority-data", "proxy-url: http://192.0.2.2, certificate-authority-data", "names a proxy"},
		"a socket":                 {"https://192.0.2.1:6443", "unix:///run/etcd.sock", "not an https URL"},
		"somebody else's identity": {"client-key-data: Yg==", "client-key-data: Yg==, as: system:admin", "impersonates"},
		"nothing":                  {soundKubeconfig, "", "has no context"},
	} {
		t.Run(name, func(t *testing.T) {
			value := soundKubeconfig
			if c.from != "" {
				if value = strings.Replace(value, c.from, c.to, 1); value == soundKubeconfig {
					t.Fatal("nothing was changed")
				}
			}
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": []byte(value)}}
			_, err := capikubeconfig.FromSecret(t.Context(), kubeconfigSecrets{fake.NewClientBuilder().WithObjects(s).Build()},
				client.ObjectKey{Namespace: "n", Name: "demo"})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "Yg==") {
				t.Errorf("the error quotes a key: %v", err)
			}
		})
	}
}

// Other Secrets are read as they are.
func TestKubeconfigSecretsOfOtherNames(t *testing.T) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo-ca"}}
	c := kubeconfigSecrets{fake.NewClientBuilder().WithObjects(s).Build()}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Error(err)
	}
	missing := client.ObjectKey{Namespace: "n", Name: "other-kubeconfig"}
	if err := c.Get(t.Context(), missing, s); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("error %v", err)
	}
}
