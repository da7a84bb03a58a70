package runtimehooks

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNewNeedsReader(t *testing.T) {
	_, err := New(Config{})
	checkError(t, err, "reader for Namespaces is required")
}

func TestNewUsesCatalog(t *testing.T) {
	c := newClient(t, func(c *Config) { c.Catalog = runtimecatalog.New() })
	err := c.Handle(Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
	checkError(t, err, "not registered")
}

func TestNewCatalogKnowsHooksOfClusterAPI(t *testing.T) {
	catalog, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	want := runtimecatalog.GroupVersionHook{Group: "hooks.runtime.cluster.x-k8s.io", Version: "v1alpha1", Hook: "BeforeClusterUpgrade"}
	if !catalog.IsHookRegistered(want) {
		t.Errorf("%s is not registered", want)
	}
}

func TestNothingWorksBeforeWarmUp(t *testing.T) {
	c := newClient(t)
	handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
	uses := map[string]func() error{
		"Register":   func() error { return c.Register(extensionConfig("ext", "https://127.0.0.1", "gate.ext")) },
		"Unregister": func() error { return c.Unregister(extensionConfig("ext", "")) },
		"GetAllExtensions": func() error {
			_, err := c.GetAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"))
			return err
		},
		"CallAllExtensions": func() error {
			return c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), upgrade(), &runtimehooksv1.BeforeClusterUpgradeResponse{})
		},
		"CallExtension": func() error {
			_, err := callGate(t.Context(), c, "gate.polder")
			return err
		},
	}
	if c.IsReady() {
		t.Error("ready before WarmUp")
	}
	for name, use := range uses {
		if err := use(); !errors.Is(err, ErrNotReady) {
			t.Errorf("%s before WarmUp: %v, want ErrNotReady", name, err)
		}
	}
	warmUp(t, c)
	if !c.IsReady() {
		t.Error("not ready after WarmUp")
	}
	for name, use := range uses {
		if err := use(); err != nil {
			t.Errorf("%s after WarmUp: %v", name, err)
		}
	}
}

func TestWarmUpSucceedsOnce(t *testing.T) {
	c := newClient(t)
	checkError(t, c.WarmUp(nil), "nil")
	warmUp(t, c)
	checkError(t, c.WarmUp(listOf()), "warmed up already")
	if !c.IsReady() {
		t.Error("a second WarmUp made the client unready")
	}
}

func TestFailedWarmUpLeavesNothingBehind(t *testing.T) {
	badVersion := extensionConfig("bad", "https://127.0.0.1", "gate.bad")
	badVersion.Status.Handlers[0].RequestHook.APIVersion = "a/b/c"
	badSelector := extensionConfig("bad", "https://127.0.0.1", "gate.bad")
	badSelector.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	tests := map[string]struct {
		bad  *runtimev1.ExtensionConfig
		want string
	}{
		"apiVersion of a handler":    {badVersion, `reading ExtensionConfig "bad": reading the apiVersion of handler "gate.bad"`},
		"namespaceSelector":          {badSelector, "namespaceSelector"},
		"name of a Go handler":       {extensionConfig("polder", "https://127.0.0.1", "gate.polder"), "taken by a handler of the plane itself"},
		"name of another one's":      {extensionConfig("bad", "https://127.0.0.1", "gate.good"), `taken by ExtensionConfig "good"`},
		"name given to the next one": {extensionConfig("first", "https://127.0.0.1", "next.last"), `taken by ExtensionConfig "first"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
			list := listOf(extensionConfig("good", "https://127.0.0.1", "gate.good"), tt.bad, extensionConfig("last", "https://127.0.0.1", "next.last"))
			checkError(t, c.WarmUp(list), tt.want)
			if c.IsReady() {
				t.Error("ready after a WarmUp that failed")
			}
			warmUp(t, c)
			checkNames(t, c, cluster("gold"), "gate.polder")
		})
	}
}

func TestHandlersAreSortedAndOfOneHook(t *testing.T) {
	other := extensionConfig("other", "https://127.0.0.1", "d.other", "a.other")
	other.Status.Handlers[0].RequestHook.Hook = "AfterClusterUpgrade"
	other.Status.Handlers[1].RequestHook.APIVersion = "example.com/v1alpha1"
	c := warmClient(t, extensionConfig("ext", "https://127.0.0.1", "z.ext", "c.ext", "a.ext"), other)
	handle(t, c,
		Handler{Name: "b.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler},
		Handler{Name: "e.polder", Hook: runtimehooksv1.AfterClusterUpgrade, Func: succeedingHandler},
	)
	checkNames(t, c, cluster("gold"), "a.ext", "b.polder", "c.ext", "z.ext")
}

func TestGetAllExtensionsChecksHook(t *testing.T) {
	_, err := warmClient(t).GetAllExtensions(t.Context(), 7, cluster("gold"))
	checkError(t, err, "int is not a hook function")
}

func TestRegisterReplaces(t *testing.T) {
	c := warmClient(t, extensionConfig("ext", "https://127.0.0.1", "a.ext", "b.ext"), extensionConfig("other", "https://127.0.0.1", "z.other"))
	if err := c.Register(extensionConfig("ext", "https://127.0.0.1", "b.ext", "c.ext")); err != nil {
		t.Fatal(err)
	}
	checkNames(t, c, cluster("gold"), "b.ext", "c.ext", "z.other")
}

func TestRegisterKeepsWhatItRead(t *testing.T) {
	var got map[string]string
	config := startGateServer(t, func(w http.ResponseWriter, r *http.Request) {
		request := &runtimehooksv1.BeforeClusterUpgradeRequest{}
		if err := json.NewDecoder(r.Body).Decode(request); err != nil {
			t.Error(err)
		}
		got = request.Settings
		answer(success)(w, r)
	})
	config.Spec.Settings = map[string]string{"kept": "yes"}
	c := warmClient(t)
	if err := c.Register(config); err != nil {
		t.Fatal(err)
	}
	config.Spec.Settings["kept"] = "no"
	config.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	config.Status.Handlers[0].Name = "other.ext"
	if _, err := callGate(t.Context(), c, "gate.ext"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kept": "yes"}, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestRegisterThatFailsKeepsHandlers(t *testing.T) {
	c := warmClient(t, extensionConfig("ext", "https://127.0.0.1", "a.ext"), extensionConfig("other", "https://127.0.0.1", "z.other"))
	handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
	bad := extensionConfig("ext", "https://127.0.0.1", "b.ext", "c.ext")
	bad.Status.Handlers[1].RequestHook.APIVersion = "a/b/c"
	checkError(t, c.Register(nil), "nil")
	checkError(t, c.Register(bad), `registering ExtensionConfig "ext": reading the apiVersion of handler "c.ext"`)
	checkError(t, c.Register(extensionConfig("ext", "https://127.0.0.1", "b.ext", "z.other")), `"z.other" is taken by ExtensionConfig "other"`)
	checkError(t, c.Register(extensionConfig("ext", "https://127.0.0.1", "gate.polder")), "taken by a handler of the plane itself")
	checkNames(t, c, cluster("gold"), "a.ext", "gate.polder", "z.other")
}

func TestUnregister(t *testing.T) {
	c := warmClient(t, extensionConfig("ext", "https://127.0.0.1", "a.ext", "b.ext"), extensionConfig("other", "https://127.0.0.1", "z.other"))
	handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
	checkError(t, c.Unregister(nil), "nil")
	for _, name := range []string{"ext", "unknown", "polder", ""} {
		if err := c.Unregister(&runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Error(err)
		}
	}
	checkNames(t, c, cluster("gold"), "gate.polder", "z.other")
	_, err := callGate(t.Context(), c, "a.ext")
	checkError(t, err, "no such handler is registered")
}

// checkNames compares the handlers of BeforeClusterUpgrade for an object, in order.
func checkNames(t *testing.T, c *Client, object client.Object, want ...string) {
	t.Helper()
	got, err := c.GetAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}
