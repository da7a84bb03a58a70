package runtimehooks

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const discoveryPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"

func newDiscoveryResponse(handlers ...runtimehooksv1.ExtensionHandler) *runtimehooksv1.DiscoveryResponse {
	return &runtimehooksv1.DiscoveryResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess},
		Handlers:       handlers,
	}
}

func upgradeHandler(name string) runtimehooksv1.ExtensionHandler {
	return runtimehooksv1.ExtensionHandler{
		Name:        name,
		RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: hooksV1, Hook: "BeforeClusterUpgrade"},
	}
}

func TestDiscover(t *testing.T) {
	full := upgradeHandler("full")
	full.TimeoutSeconds, full.FailurePolicy = new(int32(30)), new(runtimehooksv1.FailurePolicyIgnore)
	zero := upgradeHandler("a-zero")
	zero.TimeoutSeconds = new(int32(0))
	var url string
	got := &runtimehooksv1.DiscoveryRequest{}
	config := startExtensionServer(t, map[string]http.HandlerFunc{"/prefix" + discoveryPath: func(w http.ResponseWriter, r *http.Request) {
		url = r.URL.String()
		if err := json.NewDecoder(r.Body).Decode(got); err != nil {
			t.Error(err)
		}
		answerJSON(t, newDiscoveryResponse(upgradeHandler("plain"), full, zero))(w, r)
	}})
	config.Spec.ClientConfig.URL += "/prefix"
	config.Status.Handlers[0].Name = "old.ext"
	before := config.DeepCopy()

	// Cluster API discovers before it warms up.
	after, err := newClient(t).Discover(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/prefix" + discoveryPath + "?timeout=10s"; url != want {
		t.Errorf("posted to %s, want %s", url, want)
	}
	if got.APIVersion != hooksV1 || got.Kind != "DiscoveryRequest" {
		t.Errorf("request is a %s %s", got.APIVersion, got.Kind)
	}
	if diff := cmp.Diff(before, config); diff != "" {
		t.Errorf("ExtensionConfig given (-want +got):\n%s", diff)
	}
	hook := runtimev1.GroupVersionHook{APIVersion: hooksV1, Hook: "BeforeClusterUpgrade"}
	before.Status.Handlers = []runtimev1.ExtensionHandler{
		{Name: "a-zero.ext", RequestHook: hook, TimeoutSeconds: 0, FailurePolicy: runtimev1.FailurePolicyFail},
		{Name: "full.ext", RequestHook: hook, TimeoutSeconds: 30, FailurePolicy: runtimev1.FailurePolicyIgnore},
		{Name: "plain.ext", RequestHook: hook, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail},
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("ExtensionConfig returned (-want +got):\n%s", diff)
	}
}

func TestDiscoverRefuses(t *testing.T) {
	with := func(change func(*runtimehooksv1.ExtensionHandler)) *runtimehooksv1.DiscoveryResponse {
		h := upgradeHandler("gate")
		change(&h)
		return newDiscoveryResponse(upgradeHandler("good"), h)
	}
	failure := newDiscoveryResponse()
	failure.Status, failure.Message = runtimehooksv1.ResponseStatusFailure, "because"
	tests := map[string]struct {
		response *runtimehooksv1.DiscoveryResponse
		want     string
	}{
		"nothing wrong":   {with(func(*runtimehooksv1.ExtensionHandler) {}), ""},
		"no handlers":     {newDiscoveryResponse(), ""},
		"failure":         {failure, "with a failure: because"},
		"no status":       {&runtimehooksv1.DiscoveryResponse{}, `unknown status ""`},
		"name twice":      {newDiscoveryResponse(upgradeHandler("gate"), upgradeHandler("good"), upgradeHandler("gate")), `handler "gate" is listed twice`},
		"no name":         {with(func(h *runtimehooksv1.ExtensionHandler) { h.Name = "" }), `handler name "" is not a DNS label`},
		"upper case name": {with(func(h *runtimehooksv1.ExtensionHandler) { h.Name = "Gate" }), `handler name "Gate" is not a DNS label`},
		"name with a dot": {with(func(h *runtimehooksv1.ExtensionHandler) { h.Name = "a.b" }), `handler name "a.b" is not a DNS label`},
		"name of a Go handler": {with(func(h *runtimehooksv1.ExtensionHandler) { h.Name = "taken" }),
			`handler "taken.ext" is taken by a handler of the plane itself`},
		"negative timeout": {with(func(h *runtimehooksv1.ExtensionHandler) { h.TimeoutSeconds = new(int32(-1)) }),
			`handler "gate": timeoutSeconds -1 is not between 0 and 30`},
		"timeout too long": {with(func(h *runtimehooksv1.ExtensionHandler) { h.TimeoutSeconds = new(int32(31)) }),
			`handler "gate": timeoutSeconds 31 is not between 0 and 30`},
		"failure policy": {with(func(h *runtimehooksv1.ExtensionHandler) { h.FailurePolicy = new(runtimehooksv1.FailurePolicy("Maybe")) }),
			`handler "gate": failurePolicy "Maybe" is neither`},
		"unknown hook": {with(func(h *runtimehooksv1.ExtensionHandler) { h.RequestHook.Hook = "BeforeLunch" }),
			`handler "gate": hook hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeLunch is not known`},
		"unknown version": {with(func(h *runtimehooksv1.ExtensionHandler) {
			h.RequestHook.APIVersion = "hooks.runtime.cluster.x-k8s.io/v9"
		}), "is not known"},
		"no apiVersion":     {with(func(h *runtimehooksv1.ExtensionHandler) { h.RequestHook.APIVersion = "" }), "is not known"},
		"broken apiVersion": {with(func(h *runtimehooksv1.ExtensionHandler) { h.RequestHook.APIVersion = "a/b/c" }), `handler "gate": reading its apiVersion`},
		"all that is wrong": {with(func(h *runtimehooksv1.ExtensionHandler) { h.Name, h.RequestHook.Hook = "Gate", "BeforeLunch" }), "BeforeLunch is not known"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			handle(t, c, Handler{Name: "taken.ext", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler})
			config := startExtensionServer(t, map[string]http.HandlerFunc{discoveryPath: answerJSON(t, tt.response)})
			got, err := c.Discover(t.Context(), config)
			checkError(t, err, tt.want)
			if tt.want != "" {
				checkError(t, err, `discovering extension "ext": `)
			}
			if (got == nil) != (tt.want != "") {
				t.Errorf("returned %v with error %v", got, err)
			}
		})
	}
}

func TestDiscoverNeedsServer(t *testing.T) {
	c := newClient(t)
	_, err := c.Discover(t.Context(), nil)
	checkError(t, err, "nil")
	_, err = c.Discover(t.Context(), startExtensionServer(t, nil))
	checkError(t, err, `discovering extension "ext": got status 404`)
}

func TestDiscoverTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, config := newPipedClient(t, hangUntilDone)
		start := time.Now()
		_, err := c.Discover(t.Context(), config)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("returned after %s, want 10s", took)
		}
		checkError(t, err, "no answer within 10s")
	})
}

func TestDiscoveredHandlersCanBeCalled(t *testing.T) {
	config := startExtensionServer(t, map[string]http.HandlerFunc{
		discoveryPath:         answerJSON(t, newDiscoveryResponse(upgradeHandler("gate"), upgradeHandler("brake"))),
		upgradePath + "gate":  answer(`{"status":"Success","message":"gate","retryAfterSeconds":9}`),
		upgradePath + "brake": answer(`{"status":"Success","message":"brake","retryAfterSeconds":4}`),
	})
	c := newClient(t)
	config, err := c.Discover(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	warmUp(t, c, config)
	checkNames(t, c, cluster("gold"), "brake.ext", "gate.ext")
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	if err := c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), upgrade(), response); err != nil {
		t.Fatal(err)
	}
	if response.Message != "brake, gate" || response.RetryAfterSeconds != 4 {
		t.Errorf("message %q, retry after %d s", response.Message, response.RetryAfterSeconds)
	}
}

// FuzzDiscoveryResponse checks that whatever a server answers is refused or can be registered.
func FuzzDiscoveryResponse(f *testing.F) {
	f.Add([]byte(`{"status":"Success","handlers":[{"name":"gate","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterUpgrade"}}]}`))
	f.Add([]byte(`{"handlers":[{"name":"a"},{"name":"a","timeoutSeconds":31,"failurePolicy":"Maybe","requestHook":{"apiVersion":"a/b/c"}}]}`))
	f.Add([]byte(`{"handlers":[null,{}]}`))
	catalog, err := NewCatalog()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		response := &runtimehooksv1.DiscoveryResponse{}
		if json.Unmarshal(body, response) != nil {
			return // what is no JSON never gets this far
		}
		handlers, err := parseHandlers(catalog, "ext", response)
		if err != nil {
			return
		}
		var names []string
		for _, h := range handlers {
			label, ok := strings.CutSuffix(h.Name, ".ext")
			if !ok || len(validation.IsDNS1123Label(label)) > 0 || h.TimeoutSeconds < 0 || h.TimeoutSeconds > 30 ||
				(h.FailurePolicy != "Fail" && h.FailurePolicy != "Ignore") {
				t.Errorf("accepted %+v", h)
			}
			names = append(names, h.Name)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(response.Handlers) {
			t.Errorf("accepted names %q", names)
		}
	})
}
