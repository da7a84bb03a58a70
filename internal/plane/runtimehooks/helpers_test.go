package runtimehooks

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	hooksV1     = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	upgradePath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/"
	success     = `{"status":"Success"}`
)

// newClient returns a client that is not ready, in a plane with the namespaces "gold",
// labelled tier=gold, and "plain", without labels.
func newClient(t *testing.T, change ...func(*Config)) *Client {
	t.Helper()
	config := Config{Reader: fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gold", Labels: map[string]string{"tier": "gold"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
	).Build()}
	for _, f := range change {
		f(&config)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// warmClient returns a client that is ready and serves the given ExtensionConfigs.
func warmClient(t *testing.T, configs ...*runtimev1.ExtensionConfig) *Client {
	t.Helper()
	c := newClient(t)
	warmUp(t, c, configs...)
	return c
}

func warmUp(t *testing.T, c *Client, configs ...*runtimev1.ExtensionConfig) {
	t.Helper()
	if err := c.WarmUp(listOf(configs...)); err != nil {
		t.Fatal(err)
	}
}

func listOf(configs ...*runtimev1.ExtensionConfig) *runtimev1.ExtensionConfigList {
	list := &runtimev1.ExtensionConfigList{}
	for _, config := range configs {
		list.Items = append(list.Items, *config)
	}
	return list
}

func handle(t *testing.T, c *Client, handlers ...Handler) {
	t.Helper()
	for _, h := range handlers {
		if err := c.Handle(h); err != nil {
			t.Fatal(err)
		}
	}
}

// onUpgrade returns a handler for BeforeClusterUpgrade with typed objects.
func onUpgrade(name string, f func(ctx context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest,
	response *runtimehooksv1.BeforeClusterUpgradeResponse) error) Handler {
	return Handler{
		Name: name,
		Hook: runtimehooksv1.BeforeClusterUpgrade,
		Func: func(ctx context.Context, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			return f(ctx, request.(*runtimehooksv1.BeforeClusterUpgradeRequest), response.(*runtimehooksv1.BeforeClusterUpgradeResponse))
		},
	}
}

func succeedingHandler(context.Context, client.Object, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject) error {
	return nil
}

// extensionConfig returns an ExtensionConfig with handlers for BeforeClusterUpgrade in all namespaces.
func extensionConfig(name, url string, handlers ...string) *runtimev1.ExtensionConfig {
	config := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"},
		Spec: runtimev1.ExtensionConfigSpec{
			ClientConfig:      runtimev1.ClientConfig{URL: url},
			NamespaceSelector: &metav1.LabelSelector{},
		},
	}
	for _, h := range handlers {
		config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
			Name:        h,
			RequestHook: runtimev1.GroupVersionHook{APIVersion: hooksV1, Hook: "BeforeClusterUpgrade"},
		})
	}
	return config
}

// withServerCA makes config trust the certificate of srv.
func withServerCA(srv *httptest.Server, config *runtimev1.ExtensionConfig) *runtimev1.ExtensionConfig {
	config.Spec.ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	return config
}

// startExtensionServer starts an extension server that answers each path with a function, and returns an
// ExtensionConfig "ext" with a handler "gate.ext" on it.
func startExtensionServer(t *testing.T, routes map[string]http.HandlerFunc) *runtimev1.ExtensionConfig {
	t.Helper()
	mux := http.NewServeMux()
	for path, f := range routes {
		mux.HandleFunc("POST "+path, f)
	}
	srv := httptest.NewTLSServer(mux)
	t.Cleanup(srv.Close)
	return withServerCA(srv, extensionConfig("ext", srv.URL, "gate.ext"))
}

// startGateServer is startExtensionServer with only a handler "gate".
func startGateServer(t *testing.T, f http.HandlerFunc) *runtimev1.ExtensionConfig {
	t.Helper()
	return startExtensionServer(t, map[string]http.HandlerFunc{upgradePath + "gate": f})
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func answerJSON(t *testing.T, v any) http.HandlerFunc {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return answer(string(body))
}

func cluster(namespace string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "c", Labels: map[string]string{"kept": "yes"},
	}}
}

func upgrade() *runtimehooksv1.BeforeClusterUpgradeRequest {
	return &runtimehooksv1.BeforeClusterUpgradeRequest{
		Cluster:               *cluster("gold"),
		FromKubernetesVersion: "v1.35.0",
		ToKubernetesVersion:   "v1.36.0",
	}
}

// callGate calls a handler of BeforeClusterUpgrade for a cluster in namespace gold.
func callGate(ctx context.Context, c *Client, name string) (*runtimehooksv1.BeforeClusterUpgradeResponse, error) {
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	err := c.CallExtension(ctx, runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), name, upgrade(), response)
	return response, err
}

// checkError expects an error that contains want, or none if want is empty.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Errorf("no error, want one with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("error %q, want one with %q", err, want)
	}
}
