package workload_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/internal/workload"
)

var demo = client.ObjectKey{Namespace: "a", Name: "demo"}

// served starts an API server that has two groups.
func served(t *testing.T, agent string) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != agent {
			t.Errorf("agent %q, want %q", r.UserAgent(), agent)
		}
		var answer any
		switch r.URL.Path {
		case "/api":
			answer = metav1.APIVersions{Versions: []string{"v1"}}
		case "/apis":
			answer = metav1.APIGroupList{Groups: []metav1.APIGroup{group("apps", "v1")}}
		case "/api/v1":
			answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}}}
		case "/apis/apps/v1":
			answer = metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}}
		default:
			http.Error(w, "not today", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(named(answer)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func group(name, version string) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
	return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

// kubeconfig returns a kubeconfig for a server.
func kubeconfig(t *testing.T, s *httptest.Server, token string) []byte {
	t.Helper()
	c := good()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	*c.Clusters["demo"] = api.Cluster{Server: s.URL, CertificateAuthorityData: ca}
	*c.AuthInfos["admin"] = api.AuthInfo{Token: token}
	return written(t, c)
}

func secretWith(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig}}
}

func TestClusters(t *testing.T) {
	s := served(t, "polder-test")
	secret := secretWith(kubeconfig(t, s, "one"))
	secrets := fake.NewClientBuilder().WithObjects(secret).Build()
	wrapped := 0
	c := &workload.Clusters{Secrets: secrets, UserAgent: "polder-test", WrapTransport: func(rt http.RoundTripper) http.RoundTripper { wrapped++; return rt }}
	get := func() *workload.Cluster {
		t.Helper()
		got, err := c.Get(t.Context(), demo)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := get()
	if get() != first {
		t.Error("the same kubeconfig gives another client")
	}
	secret.Data["value"] = kubeconfig(t, s, "two")
	if err := secrets.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	second := get()
	if second == first {
		t.Error("another kubeconfig gives the client of the old one")
	}
	if get() != second {
		t.Error("the other kubeconfig is not remembered")
	}
	c.Forget(client.ObjectKey{Namespace: "b", Name: "demo"})
	if get() != second {
		t.Error("another cluster was forgotten, and this one with it")
	}
	c.Forget(demo)
	if get() == second {
		t.Error("a cluster that was forgotten is known")
	}
	if wrapped == 0 {
		t.Error("the transport is not wrapped")
	}
	apis, err := second.APIVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"}, apis); d != "" {
		t.Error(d)
	}
	s.Close()
	if _, err := second.APIVersions(t.Context()); err == nil || !strings.Contains(err.Error(), "asking the cluster what it serves") {
		t.Errorf("of a server that is gone: %v", err)
	}
}

func TestClustersThatCannotBeReached(t *testing.T) {
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		want    string
		missing bool
	}{
		"there is no Secret": {nil, "reading the kubeconfig of cluster a/demo: ", true},
		"the Secret is another's": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "demo-kubeconfig"}},
			"reading the kubeconfig of cluster a/demo: ", true},
		"the Secret is empty":       {secretWith(nil), `secret demo-kubeconfig of cluster a/demo: the kubeconfig has no context ""`, false},
		"the kubeconfig is refused": {secretWith([]byte(token)), "secret demo-kubeconfig of cluster a/demo: the kubeconfig cannot be read", false},
		"the authority is no such":  {secretWith(written(t, good())), "secret demo-kubeconfig of cluster a/demo: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			if tc.secret != nil {
				b = b.WithObjects(tc.secret)
			}
			c := &workload.Clusters{Secrets: b.Build()}
			for range 2 { // nothing of it is cached
				got, err := c.Get(t.Context(), demo)
				if got != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), key) {
					t.Errorf("%v, %v; want %s", got, err, tc.want)
				}
				if apierrors.IsNotFound(err) != tc.missing {
					t.Errorf("%v: not found: %t, want %t", err, !tc.missing, tc.missing)
				}
			}
		})
	}
}
