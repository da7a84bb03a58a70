package kubeconfigrequest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/workload"
)

func TestNewKubeconfigIsComplete(t *testing.T) {
	o := newCredentialSpec(t)
	file, c, err := o.newKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	// The strictest parser that we have.
	cfg, err := workload.RESTConfigFromKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != o.endpoint || !bytes.Equal(cfg.CAData, o.authority.bundle) {
		t.Errorf("it is for %s, or trusts somebody else", cfg.Host)
	}
	pair, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
	if err != nil || !bytes.Equal(pair.Certificate[0], c.Raw) {
		t.Errorf("its certificate and key do not belong together, or are others: %v", err)
	}
	read, err := clientcmd.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{read.CurrentContext, read.Contexts[name].Cluster, read.Contexts[name].AuthInfo}
	if d := cmp.Diff([]string{name, name, "polder-admin"}, got); d != "" {
		t.Error(d)
	}
	if block, _ := pem.Decode(cfg.KeyData); block == nil || block.Type != "PRIVATE KEY" {
		t.Error("the key is not in PKCS #8 form")
	}
}

func TestReusableCertificate(t *testing.T) {
	made := newCredentialSpec(t)
	file, c, err := made.newKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(*clientcmdapi.Config)) []byte {
		read, err := clientcmd.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		change(read)
		out, err := clientcmd.Write(*read)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	_, otherKey := newKey(t)
	same := func(*credentialSpec) {}
	for title, c := range map[string]struct {
		change func(*credentialSpec)
		file   []byte
		want   *x509.Certificate
	}{
		"as it was made":       {same, file, c},
		"some time later":      {func(o *credentialSpec) { o.now = at.Add(59 * time.Minute) }, file, c},
		"over":                 {func(o *credentialSpec) { o.now = at.Add(time.Hour) }, file, nil},
		"nothing":              {same, nil, nil},
		"garbage":              {same, []byte("{{{"), nil},
		"too large":            {same, append(bytes.Clone(file), bytes.Repeat([]byte("\n"), maxKubeconfig)...), nil},
		"of another role":      {func(o *credentialSpec) { o.role = v1alpha1.RoleViewer }, file, nil},
		"of somebody else":     {func(o *credentialSpec) { o.username = "bob" }, file, nil},
		"of another cluster":   {func(o *credentialSpec) { o.cluster = "dev" }, file, nil},
		"of another endpoint":  {func(o *credentialSpec) { o.endpoint = "https://192.0.2.2:6443" }, file, nil},
		"of another authority": {func(o *credentialSpec) { o.authority = newAuthority(t, nil) }, file, nil},
		"with a program": {same, edit(func(k *clientcmdapi.Config) {
			k.AuthInfos["polder-admin"].Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}), nil},
		"with a proxy":       {same, edit(func(k *clientcmdapi.Config) { k.Clusters[name].ProxyURL = "http://192.0.2.3" }), nil},
		"with another key":   {same, edit(func(k *clientcmdapi.Config) { k.AuthInfos["polder-admin"].ClientKeyData = otherKey }), nil},
		"without a user":     {same, edit(func(k *clientcmdapi.Config) { delete(k.AuthInfos, "polder-admin") }), nil},
		"with more users":    {same, edit(func(k *clientcmdapi.Config) { k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "x"} }), nil},
		"with two documents": {same, append(bytes.Clone(file), file...), nil},
	} {
		t.Run(title, func(t *testing.T) {
			o := *made
			c.change(&o)
			got := o.reusableCertificate(c.file)
			if (got == nil) != (c.want == nil) || got != nil && !got.Equal(c.want) {
				t.Errorf("standing: %v, want %v", got != nil, c.want != nil)
			}
		})
	}
}
