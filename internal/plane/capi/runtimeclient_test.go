package capi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/internal/plane/runtimehooks"
)

func newTolerantClient(t *testing.T) tolerantRuntimeClient {
	t.Helper()
	c, err := runtimehooks.New(runtimehooks.Config{Reader: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()})
	if err != nil {
		t.Fatal(err)
	}
	return tolerantRuntimeClient{c}
}

func extension(name, url string) runtimev1.ExtensionConfig {
	return runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: url, CABundle: []byte("x")}, NamespaceSelector: &metav1.LabelSelector{}},
		Status: runtimev1.ExtensionConfigStatus{Handlers: []runtimev1.ExtensionHandler{{
			Name: "h." + name, RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
			FailurePolicy: runtimev1.FailurePolicyFail,
		}}},
	}
}

func TestUnreachableExtensionDoesNotStopTheStart(t *testing.T) {
	p := newTolerantClient(t)
	e := extension("away", "https://127.0.0.1:1/")
	got, err := p.Discover(t.Context(), &e)
	if err != nil || len(got.Status.Handlers) != 1 {
		t.Errorf("during the start: %v, %v; want the handlers of last time", got, err)
	}
	if err := p.WarmUp(&runtimev1.ExtensionConfigList{Items: []runtimev1.ExtensionConfig{*got}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Discover(t.Context(), &e); err == nil {
		t.Error("after the start the failure is hidden from the reconciler")
	}
}

func TestWrongExtensionDoesNotStopTheOthers(t *testing.T) {
	p := newTolerantClient(t)
	bad, good := extension("bad", "https://127.0.0.1:1/"), extension("good", "https://127.0.0.1:1/")
	bad.Status.Handlers[0].RequestHook.APIVersion = "a/b/c"
	if err := p.WarmUp(&runtimev1.ExtensionConfigList{Items: []runtimev1.ExtensionConfig{bad, good}}); err != nil || !p.IsReady() {
		t.Errorf("WarmUp() = %v, ready %v", err, p.IsReady())
	}
}
