package plane

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

func TestServiceAccountCanDoJustWhatItsRoleSays(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns, other := p.CreateNamespace(t), p.CreateNamespace(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: sa.Name}}}
	for _, o := range []client.Object{sa, role, binding} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for name, token := range map[string]string{"requested token": requestToken(t, p, ns, sa.Name), "token in a Secret": secretToken(t, admin, ns, sa.Name)} {
		t.Run(name, func(t *testing.T) {
			cfg := rest.AnonymousClientConfig(p.RESTConfig(t))
			cfg.BearerToken = token
			c := testenv.NewClient(t, cfg)
			testenv.Eventually(t, wait, func() error { return c.List(t.Context(), &clusterv1.ClusterList{}, client.InNamespace(ns)) })
			for what, err := range map[string]error{
				"listing clusters elsewhere": c.List(t.Context(), &clusterv1.ClusterList{}, client.InNamespace(other)),
				"listing machines":           c.List(t.Context(), &clusterv1.MachineList{}, client.InNamespace(ns)),
				"reading secrets":            c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)),
				"creating a cluster":         c.Create(t.Context(), testenv.StubCluster(t, ns, "x")),
				"giving itself more": c.Create(t.Context(), &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "more"},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				}),
			} {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s: got %v, want forbidden", what, err)
				}
			}
		})
	}
}

func requestToken(t *testing.T, p *testenv.Plane, ns, name string) string {
	t.Helper()
	k, err := kubernetes.NewForConfig(p.RESTConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

func secretToken(t *testing.T, c client.Client, ns, name string) string {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if err := c.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if len(s.Data[corev1.ServiceAccountTokenKey]) == 0 || len(s.Data[corev1.ServiceAccountRootCAKey]) == 0 {
			return fmt.Errorf("the Secret has no token yet")
		}
		return nil
	})
	return string(s.Data[corev1.ServiceAccountTokenKey])
}

// TestUnauthenticated requests every path the API knows, without credentials and with wrong ones: only three may
// answer.
func TestUnauthenticated(t *testing.T) {
	p := shared.Get(t)
	base := p.Status(t).Address
	open := map[string]bool{"/livez": true, "/readyz": true, "/version": true}
	paths := knownPaths(t, p.RESTConfig(t))
	if len(paths) < 60 {
		t.Fatalf("the API names only %d paths; the test would show little", len(paths))
	}
	// Spellings that some servers fold into an allowed path before they check, or after.
	paths = append(paths, "/", "/livez/", "/readyz/", "/version/", "/readyz/etcd", "/livez/ping", "/livez/../api", "/readyz/..%2fapi", "//readyz", "/readyz//",
		"/%72eadyz/x", "/version;x",
		"/api/v1/secrets", "/apis/cluster.x-k8s.io/v1beta2/clusters", "/convert", "/debug/pprof/", "/debug/pprof/heap", "/logs", "/metrics/controllers",
		"/metrics/etcd", "/maintenance/store", "/api/v1/namespaces/default/secrets?watch=1")
	// The API knows no passwords: who sends one is as anonymous as who sends nothing.
	credentials := map[string]string{"none": "", "a made-up token": "Bearer nonsense", "a password": "Basic YWRtaW46YWRtaW4="}
	c := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for who, auth := range credentials {
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				code := statusCode(t, c, method, base+path, auth)
				allowed := open[strings.SplitN(path, "?", 2)[0]] && method == http.MethodGet && !strings.HasPrefix(auth, "Bearer")
				if allowed && code != http.StatusOK {
					t.Errorf("%s %s with %s: got %d, want 200", method, path, who, code)
				}
				if !allowed && code < 300 {
					t.Errorf("%s %s with %s: got %d, want a refusal", method, path, who, code)
				}
			}
		}
	}
	t.Logf("asked %d paths", len(paths))
}

func statusCode(t *testing.T, c *http.Client, method, url, auth string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// knownPaths is the API's own list of what it serves.
func knownPaths(t *testing.T, cfg *rest.Config) []string {
	t.Helper()
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	root := struct{ Paths []string }{}
	b, err := k.RESTClient().Get().AbsPath("/").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(b, &root); err != nil {
		t.Fatal(err)
	}
	return root.Paths
}

// TestClusterAPIActsWithItsOwnRights shows that Cluster API acts with its own rights only: a customer's
// Cluster that points at an object outside of them does not make it touch that object.
func TestClusterAPIActsWithItsOwnRights(t *testing.T) {
	p := shared.Get(t)
	for _, manager := range []string{"core", "bootstrap", "control-plane"} {
		cfg := rest.CopyConfig(p.RESTConfig(t))
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "polder:cluster-api:" + manager}
		c := testenv.NewClient(t, cfg)
		if err := c.List(t.Context(), &clusterv1.ClusterList{}); err != nil {
			t.Errorf("%s cannot list clusters: %v", manager, err)
		}
		for what, err := range map[string]error{
			"read cluster roles": c.List(t.Context(), &rbacv1.ClusterRoleList{}),
			"make role bindings": c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			}),
			"delete namespaces": c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s may %s: %v", manager, what, err)
			}
		}
	}
	admin := p.Client(t)
	b := &rbacv1.ClusterRoleBindingList{}
	if err := admin.List(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, crb := range b.Items {
		for _, s := range crb.Subjects {
			if strings.HasPrefix(s.Name, "polder:cluster-api:") && crb.RoleRef.Name == "cluster-admin" {
				t.Errorf("%s has all rights through %s", s.Name, crb.Name)
			}
		}
	}
}
