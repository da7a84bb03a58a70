package plane

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// TestRuntimeExtension registers an extension as Cluster API's users do, and has it hold back
// the creation of a cluster.
func TestRuntimeExtension(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, c, ns)
	var open atomic.Bool
	var asked atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "status": "Success"}
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery"):
			answer["kind"] = "DiscoveryResponse"
			answer["handlers"] = []any{
				map[string]any{"name": "gate", "requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"}},
			}
		case strings.HasSuffix(r.URL.Path, "/beforeclustercreate/gate"):
			asked.Add(1)
			answer["kind"] = "BeforeClusterCreateResponse"
			if !open.Load() {
				answer["retryAfterSeconds"] = 1
				answer["message"] = "the gate is shut"
			}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer srv.Close()
	e := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": ns},
		"spec": map[string]any{
			"clientConfig":      map[string]any{"url": srv.URL, "caBundle": base64.StdEncoding.EncodeToString(certificateOf(srv.TLS))},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": ns}},
		},
	}}
	if err := c.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(t.Context(), e) })
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if hs, _, _ := unstructured.NestedSlice(e.Object, "status", "handlers"); len(hs) != 1 {
			return fmt.Errorf("not discovered: %v", e.Object["status"])
		}
		return nil
	})
	if err := c.Create(t.Context(), testenv.StubCluster(t, ns, "held")); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		cluster := &clusterv1.Cluster{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "held"}, cluster); err != nil {
			return err
		}
		for _, cond := range cluster.Status.Conditions {
			if strings.Contains(cond.Message, "the gate is shut") {
				return nil
			}
		}
		return fmt.Errorf("asked %d times; no condition says why the cluster waits: %v", asked.Load(), cluster.Status.Conditions)
	})
	if err := hasChildren(t, c, ns, "held"); err == nil {
		t.Error("the cluster was made although the gate is shut")
	}
	open.Store(true)
	testenv.Eventually(t, wait, func() error { return hasChildren(t, c, ns, "held") })
}
