package kubeconfigfile

import (
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/cli/output"
)

func TestMergeContext(t *testing.T) {
	of := func(server string) *clientcmdapi.Config {
		const name = "polder-default-demo"
		return &clientcmdapi.Config{
			CurrentContext: "demo", Contexts: map[string]*clientcmdapi.Context{"demo": {Cluster: name, AuthInfo: name}},
			Clusters: map[string]*clientcmdapi.Cluster{name: {Server: server}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {Token: server}},
		}
	}
	into := clientcmdapi.NewConfig()
	if err := mergeContext(into, into, of("https://one"), false); err != nil || into.CurrentContext != "demo" {
		t.Fatalf("an empty one: %v, %+v", err, into)
	}
	into.Contexts["demo"].Namespace = "kept"
	if err := mergeContext(into, into, of("https://one"), false); err != nil || into.Contexts["demo"].Namespace != "kept" {
		t.Errorf("again: %v, %+v", err, into.Contexts["demo"])
	}
	err := mergeContext(into, into, of("https://two"), false)
	if output.Message(err) != `your kubeconfig has a context "demo" for another cluster; rename that with: kubectl config rename-context demo NEW, or replace it with --force` || into.AuthInfos["polder-default-demo"].Token != "https://one" {
		t.Errorf("another server: %v", err)
	}
	if err := mergeContext(clientcmdapi.NewConfig(), into, of("https://two"), false); err == nil {
		t.Error("a context of another file is hidden")
	}
	into.Contexts["renamed"] = into.Contexts["demo"]
	delete(into.Contexts, "demo")
	err = mergeContext(into, into, of("https://two"), false)
	if output.Message(err) != `your kubeconfig has a cluster "polder-default-demo" at another address, which other contexts may use; replace it with --force` {
		t.Errorf("a renamed context: %v", err)
	}
	if err := mergeContext(into, into, of("https://two"), true); err != nil || into.Clusters["polder-default-demo"].Server != "https://two" {
		t.Errorf("--force: %v", err)
	}
}

func TestMergeTarget(t *testing.T) {
	own := filepath.Join(t.TempDir(), "admin.kubeconfig")
	for want, precedence := range map[string][]string{
		"/a":                          {"/a"},
		"/b":                          {own, "/b"},
		clientcmd.RecommendedHomeFile: {own},
	} {
		before := slices.Clone(precedence)
		if got := MergeTarget(&clientcmd.ClientConfigLoadingRules{Precedence: precedence}, "demo"); got != want || !slices.Equal(before, precedence) {
			t.Errorf("%v: %s, want %s", before, got, want)
		}
	}
}
