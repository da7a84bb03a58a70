package kubeconfig

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/polder-kaas/polder/client"
)

const answer = `apiVersion: v1
kind: Config
current-context: demo
contexts:
- {name: demo, context: {cluster: c, user: u}}
clusters:
- {name: c, cluster: {server: "https://demo:6443"}}
users:
- name: u
  user: {client-certificate-data: Y2VydA==}
`

func TestAddKey(t *testing.T) {
	file, err := addKey([]byte(answer), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := clientcmd.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	u := k.AuthInfos["u"]
	if u == nil || string(u.ClientKeyData) != "key" || string(u.ClientCertificateData) != "cert" || k.CurrentContext != "demo" || k.Clusters["c"].Server != "https://demo:6443" {
		t.Errorf("%s", file)
	}
	for _, bad := range []string{"", "users: []", "users: [{name: a}]", "users: 5", answer + "- {name: v, user: {}}\n"} {
		if out, err := addKey([]byte(bad), []byte("key")); err == nil {
			t.Errorf("%q becomes %s", bad, out)
		}
	}
}

// TestKeyIsNotSent: the plane sees a request for a certificate, never the key; and no other cluster of the name is taken.
func TestKeyIsNotSent(t *testing.T) {
	sent := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1<<16)
		n, _ := r.Body.Read(b)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"metadata":{"name":"demo","uid":"1"}}`))
			return
		}
		sent = string(b[:n])
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kubeconfig":"users: [{name: u, user: {}}]","certificate":"c","endpoint":"https://demo","certificateAuthority":"a","expirationTime":"2026-01-01T00:00:00Z"}`))
	}))
	defer s.Close()
	api, err := client.NewClientWithResponses(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &Resource{api: api}
	m := &model{Tenant: types.StringValue("acme"), Cluster: types.StringValue("demo"), UID: types.StringValue("1"), Role: types.StringValue("admin")}
	if err := r.open(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	key := m.ClientKey.ValueString()
	if !strings.Contains(sent, "CERTIFICATE REQUEST") || !strings.Contains(sent, `"admin"`) || strings.Contains(sent, "PRIVATE KEY") || !strings.Contains(key, "PRIVATE KEY") ||
		strings.Contains(sent, strings.Split(key, "\n")[1]) {
		t.Errorf("%s was sent; the key is %d bytes", sent, len(key))
	}
	if m.Host.ValueString() != "https://demo" || !strings.Contains(m.Kubeconfig.ValueString(), "client-key-data") || m.ExpirationTime.ValueString() != "2026-01-01T00:00:00Z" {
		t.Errorf("%+v", m)
	}
	m.UID, sent = types.StringValue("2"), ""
	if err := r.open(t.Context(), m); err == nil || sent != "" {
		t.Errorf("access to another cluster: %v %s", err, sent)
	}
}
