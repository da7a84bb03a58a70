package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/workload"
)

// Secrets of the kubeconfigs here: no error may have one of them.
const (
	key      = "the-private-key"
	token    = "the-bearer-token"
	password = "the-password"
)

// good returns a kubeconfig as Cluster API makes it.
func good() *api.Config {
	c := api.NewConfig()
	c.Clusters["demo"] = &api.Cluster{Server: "https://192.0.2.7:6443", CertificateAuthorityData: []byte("the-authority")}
	c.AuthInfos["admin"] = &api.AuthInfo{ClientCertificateData: []byte("the-certificate"), ClientKeyData: []byte(key)}
	c.Contexts["admin@demo"] = &api.Context{Cluster: "demo", AuthInfo: "admin"}
	c.CurrentContext = "admin@demo"
	return c
}

func written(t *testing.T, c *api.Config) []byte {
	t.Helper()
	b, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRESTConfigOfGoodKubeconfigs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *api.Config, cluster *api.Cluster, user *api.AuthInfo)
		want   func(*rest.Config)
	}{
		"a client certificate": {},
		"a token": {
			func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { *u = api.AuthInfo{Token: token} },
			func(r *rest.Config) { r.BearerToken, r.CertData, r.KeyData = token, nil, nil },
		},
		"a server with a path": {
			func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "https://example.org/clusters/demo" },
			func(r *rest.Config) { r.Host = "https://example.org/clusters/demo" },
		},
		"another name of the server": {
			func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.TLSServerName = "kubernetes" },
			func(r *rest.Config) { r.ServerName = "kubernetes" },
		},
		"harm in a context that is not the current one": {
			change: func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) {
				c.Clusters["x"] = &api.Cluster{Server: "http://example.org", ProxyURL: "http://example.org"}
				c.AuthInfos["x"] = &api.AuthInfo{Exec: &api.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1"}}
				c.Contexts["x"] = &api.Context{Cluster: "x", AuthInfo: "x"}
			},
		},
		"a namespace, which nobody needs": {
			change: func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) { c.Contexts["admin@demo"].Namespace = "a" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			if tc.change != nil {
				tc.change(c, c.Clusters["demo"], c.AuthInfos["admin"])
			}
			want := &rest.Config{
				Host: "https://192.0.2.7:6443", Timeout: 15 * time.Second, QPS: -1,
				TLSClientConfig: rest.TLSClientConfig{CAData: []byte("the-authority"), CertData: []byte("the-certificate"), KeyData: []byte(key)},
			}
			if tc.want != nil {
				tc.want(want)
			}
			got, err := workload.RESTConfigFromKubeconfig(written(t, c))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Whoever may write the Secret of a cluster must not make us do anything but talk to that cluster.
func TestRESTConfigOfKubeconfigsThatDoMore(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *api.Config, cluster *api.Cluster, user *api.AuthInfo)
		want   string
	}{
		"it runs a program": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) {
			u.Exec = &api.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode}
		}, "it runs a program (exec)"},
		"it names an auth provider": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) {
			u.AuthProvider = &api.AuthProviderConfig{Name: "oidc", Config: map[string]string{"refresh-token": token}}
		}, "it names an auth-provider"},
		"it has its authority in a file": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.CertificateAuthority, c.CertificateAuthorityData = "/etc/passwd", nil
		}, "it has no certificate-authority-data"},
		"it has its authority in a file, too": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.CertificateAuthority = "/etc/passwd"
		}, "it names a file (certificate-authority)"},
		"it has its certificate in a file": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.ClientCertificate = "/etc/passwd" },
			"it names a file (client-certificate, client-key or tokenFile)"},
		"it has its key in a file": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.ClientKey = "/etc/passwd" },
			"it names a file (client-certificate, client-key or tokenFile)"},
		"it has its token in a file": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.TokenFile = "/etc/passwd" },
			"it names a file (client-certificate, client-key or tokenFile)"},
		"it goes through a proxy": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.ProxyURL = "http://user:" + password + "@example.org"
		}, "it names a proxy (proxy-url)"},
		"it believes any server": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.InsecureSkipTLSVerify = true
		}, "it does not verify the server (insecure-skip-tls-verify)"},
		"it believes any server, without an authority": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
		}, "it does not verify the server (insecure-skip-tls-verify)"},
		"it has no authority": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthorityData = nil },
			"it has no certificate-authority-data"},
		"its server is spoken to in the open": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "http://192.0.2.7:6443" },
			"its server is not an https URL"},
		"its server is a host only": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "192.0.2.7:6443" },
			"its server is not an https URL"},
		"its server is a socket": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "unix:///run/containerd.sock" },
			"its server is not an https URL"},
		"its server is a path": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "https:///var/run" },
			"its server is not an https URL"},
		"its server is nowhere": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "" }, "its server is not an https URL"},
		"its server is no URL": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) { c.Server = "https://%zz" + password },
			"its server is not an https URL"},
		"its server has a password": {func(_ *api.Config, c *api.Cluster, _ *api.AuthInfo) {
			c.Server = "https://user:" + password + "@example.org"
		}, "its server is not an https URL"},
		"it is somebody else": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.Impersonate = "root" }, "it impersonates somebody"},
		"it is somebody else by a number": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) {
			u.ImpersonateUID = "0"
		}, "it impersonates somebody"},
		"it is in other groups": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) {
			u.ImpersonateGroups = []string{"system:masters"}
		}, "it impersonates somebody"},
		"it has what somebody else has": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) {
			u.ImpersonateUserExtra = map[string][]string{"a": {"b"}}
		}, "it impersonates somebody"},
		"it has a user name": {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.Username = "root" }, "it has a user name and a password"},
		"it has a password":  {func(_ *api.Config, _ *api.Cluster, u *api.AuthInfo) { u.Password = password }, "it has a user name and a password"},
		"both its parts are bad": {func(_ *api.Config, c *api.Cluster, u *api.AuthInfo) {
			c.ProxyURL, u.TokenFile = "http://example.org", "/etc/passwd"
		}, "it names a proxy (proxy-url)\nit names a file (client-certificate, client-key or tokenFile)"},
		"there is no context": {func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) {
			c.Contexts, c.CurrentContext = nil, ""
		}, `the kubeconfig has no context ""`},
		"none of its contexts is current": {func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) { c.CurrentContext = "" }, `the kubeconfig has no context ""`},
		"its context is another":          {func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) { c.CurrentContext = "b" }, `the kubeconfig has no context "b"`},
		"its context has another user": {func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) { c.Contexts["admin@demo"].AuthInfo = "b" },
			`the kubeconfig has no cluster or no user for context "admin@demo"`},
		"its context has another cluster": {func(c *api.Config, _ *api.Cluster, _ *api.AuthInfo) { c.Contexts["admin@demo"].Cluster = "b" },
			`the kubeconfig has no cluster or no user for context "admin@demo"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			c.AuthInfos["admin"].Token = token
			tc.change(c, c.Clusters["demo"], c.AuthInfos["admin"])
			want := tc.want
			if !strings.HasPrefix(want, "the kubeconfig") {
				want = "the kubeconfig is refused: " + want
			}
			refused(t, written(t, c), want)
		})
	}
}

func TestRESTConfigOfWhatIsNoKubeconfig(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":     {"", `the kubeconfig has no context ""`},
		"a text":      {token, "the kubeconfig cannot be read"},
		"broken YAML": {"users: [{name: a, user: {token: " + token + "}", "the kubeconfig cannot be read"},
		"a key of the wrong type": {"apiVersion: v1\nkind: Config\nusers: [{name: a, user: {client-key-data: \"%" + key + "\"}}]",
			"the kubeconfig cannot be read"},
		"something else":             {"apiVersion: v1\nkind: Secret\nstringData: {a: " + token + "}", "the kubeconfig cannot be read"},
		"as much as may be":          {strings.Repeat(" ", 256<<10), `the kubeconfig has no context ""`},
		"more than anybody can read": {strings.Repeat(" ", 256<<10+1), "the kubeconfig has 262145 bytes, and may have 262144"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, []byte(tc.text), tc.want) })
	}
}

func refused(t *testing.T, kubeconfig []byte, want string) {
	t.Helper()
	got, err := workload.RESTConfigFromKubeconfig(kubeconfig)
	if err == nil || got != nil {
		t.Fatalf("it was taken: %v", got)
	}
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	for _, secret := range []string{key, token, password} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}
