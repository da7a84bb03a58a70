package runtimehooks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestHandleChecksHandler(t *testing.T) {
	tests := map[string]struct {
		change func(*Handler)
		want   string
	}{
		"good":                    {func(*Handler) {}, ""},
		"longest timeout":         {func(h *Handler) { h.Timeout = 30 * time.Second }, ""},
		"no function":             {func(h *Handler) { h.Func = nil }, "no function"},
		"no name":                 {func(h *Handler) { h.Name = "" }, "<handler>.<extension>"},
		"name of one part":        {func(h *Handler) { h.Name = "gate" }, "<handler>.<extension>"},
		"name of three parts":     {func(h *Handler) { h.Name = "a.b.c" }, "<handler>.<extension>"},
		"name not a DNS label":    {func(h *Handler) { h.Name = "Gate.polder" }, `"Gate" in its name is not a DNS label`},
		"negative timeout":        {func(h *Handler) { h.Timeout = -1 }, "not between 0 and 30s"},
		"timeout too long":        {func(h *Handler) { h.Timeout = 31 * time.Second }, "not between 0 and 30s"},
		"unknown failure policy":  {func(h *Handler) { h.FailurePolicy = "Maybe" }, "neither Fail nor Ignore"},
		"no hook":                 {func(h *Handler) { h.Hook = nil }, "not a hook function"},
		"hook is not a function":  {func(h *Handler) { h.Hook = "BeforeClusterUpgrade" }, "not a hook function"},
		"function is not a hook":  {func(h *Handler) { h.Hook = func() {} }, "not registered"},
		"hook without handlers":   {func(h *Handler) { h.Hook = runtimehooksv1.Discovery }, "has no handlers"},
		"hook of another catalog": {func(h *Handler) { h.Hook = func(*runtimehooksv1.DiscoveryRequest, *clusterv1.Cluster) {} }, "not registered"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler}
			tt.change(&h)
			checkError(t, newClient(t).Handle(h), tt.want)
		})
	}
}

func TestHandleRefusesTakenName(t *testing.T) {
	c := warmClient(t, extensionConfig("ext", "https://127.0.0.1", "gate.ext"))
	h := Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: succeedingHandler}
	handle(t, c, h)
	h.Hook = runtimehooksv1.AfterClusterUpgrade
	checkError(t, c.Handle(h), "taken by a handler of the plane itself")
	h.Name = "gate.ext"
	checkError(t, c.Handle(h), `taken by ExtensionConfig "ext"`)
}

func TestGoHandlerGetsCallAndGivesAnswer(t *testing.T) {
	c := warmClient(t)
	var gotObject client.Object
	var gotRequest, gotResponse any
	handle(t, c, Handler{
		Name: "gate.polder",
		Hook: runtimehooksv1.BeforeClusterUpgrade,
		Func: func(ctx context.Context, forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			gotObject, gotRequest, gotResponse = forObject, request.DeepCopyObject(), response.DeepCopyObject()
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the context has no deadline")
			}
			response.SetMessage("wait")
			response.(runtimehooksv1.RetryResponseObject).SetRetryAfterSeconds(5)
			return nil
		},
	})
	request := upgrade()
	request.Settings = map[string]string{"a": "b"}
	stale := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	stale.APIVersion, stale.Status, stale.Message = "stale", "stale", "stale"
	if err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.polder", request, stale); err != nil {
		t.Fatal(err)
	}

	wantRequest := request.DeepCopy()
	wantRequest.APIVersion, wantRequest.Kind = hooksV1, "BeforeClusterUpgradeRequest"
	if diff := cmp.Diff(any(wantRequest), gotRequest); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(client.Object(cluster("gold")), gotObject); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(&runtimehooksv1.BeforeClusterUpgradeResponse{}), gotResponse); diff != "" {
		t.Errorf("response given to the handler (-want +got):\n%s", diff)
	}
	want := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	want.Status, want.Message, want.RetryAfterSeconds = runtimehooksv1.ResponseStatusSuccess, "wait", 5
	if diff := cmp.Diff(want, stale); diff != "" {
		t.Errorf("response given to the caller (-want +got):\n%s", diff)
	}
}

func TestGoHandlerCannotChangeWhatCallerHolds(t *testing.T) {
	c := warmClient(t)
	handle(t, c, Handler{
		Name: "gate.polder",
		Hook: runtimehooksv1.BeforeClusterUpgrade,
		Func: func(_ context.Context, forObject client.Object, request runtimehooksv1.RequestObject, _ runtimehooksv1.ResponseObject) error {
			forObject.GetLabels()["kept"] = "no"
			request.(*runtimehooksv1.BeforeClusterUpgradeRequest).Cluster.Labels["kept"] = "no"
			request.GetSettings()["kept"] = "no"
			return nil
		},
	})
	object, request := cluster("gold"), upgrade()
	request.Settings = map[string]string{"kept": "yes"}
	wantObject, wantRequest := object.DeepCopy(), request.DeepCopy()
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	if err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, object, "gate.polder", request, response); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantObject, object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantRequest, request); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestCallerCannotChangeWhatGoHandlerHolds(t *testing.T) {
	c := warmClient(t)
	held := []clusterv1.ClusterClassVariable{{Name: "kept"}}
	handle(t, c, Handler{
		Name: "variables.polder",
		Hook: runtimehooksv1.DiscoverVariables,
		Func: func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			response.(*runtimehooksv1.DiscoverVariablesResponse).Variables = held
			return nil
		},
	})
	response := &runtimehooksv1.DiscoverVariablesResponse{}
	if err := c.CallExtension(t.Context(), runtimehooksv1.DiscoverVariables, cluster("gold"), "variables.polder", &runtimehooksv1.DiscoverVariablesRequest{},
		response); err != nil {
		t.Fatal(err)
	}
	response.Variables[0].Name = "changed"
	if held[0].Name != "kept" {
		t.Error("the caller changed a variable of the handler")
	}
}

func TestGoHandlerOutcome(t *testing.T) {
	says := func(s runtimehooksv1.ResponseStatus) HandlerFunc {
		return func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			response.SetStatus(s)
			response.SetMessage("because")
			return nil
		}
	}
	fails := func(err error) HandlerFunc {
		return func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			response.SetMessage("half done")
			return err
		}
	}
	tests := map[string]struct {
		f      HandlerFunc
		fail   string // error with failure policy Fail
		ignore string // error with failure policy Ignore
	}{
		"status left empty": {f: succeedingHandler},
		"status Success":    {f: says(runtimehooksv1.ResponseStatusSuccess)},
		"status Failure":    {says(runtimehooksv1.ResponseStatusFailure), "with a failure: because", "with a failure: because"},
		"unknown status":    {says("Perhaps"), `unknown status "Perhaps": because`, `unknown status "Perhaps": because`},
		"error":             {f: fails(errors.New("no disk")), fail: `"gate.polder": no disk`},
		"panic":             {f: panickingHandler, fail: `"gate.polder": it panicked: assignment to entry in nil map`},
		"goroutine ended":   {f: exitingHandler, fail: `"gate.polder": it ended its goroutine`},
	}
	for name, tt := range tests {
		for policy, want := range map[runtimev1.FailurePolicy]string{"": tt.fail, "Fail": tt.fail, "Ignore": tt.ignore} {
			t.Run(name+" with policy "+string(policy), func(t *testing.T) {
				c := warmClient(t)
				handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, FailurePolicy: policy, Func: tt.f})
				response, err := callGate(t.Context(), c, "gate.polder")
				checkError(t, err, want)
				if err == nil && response.Status != runtimehooksv1.ResponseStatusSuccess {
					t.Errorf("no error and status %q", response.Status)
				}
				if tt.fail != "" && err == nil && response.Message != "" {
					t.Errorf("an ignored error left message %q", response.Message)
				}
				if tt.ignore != "" && response.Message != "because" {
					t.Errorf("message %q of a failure, want the one of the handler", response.Message)
				}
			})
		}
	}
}

func TestCallExtensionChecksCall(t *testing.T) {
	otherHook := func(*runtimehooksv1.BeforeClusterCreateRequest, *runtimehooksv1.BeforeClusterCreateResponse) {}
	request, response := upgrade(), &runtimehooksv1.BeforeClusterUpgradeResponse{}
	tests := map[string]struct {
		hook     runtimecatalog.Hook
		object   client.Object
		name     string
		request  runtimehooksv1.RequestObject
		response runtimehooksv1.ResponseObject
		want     string
	}{
		"unknown handler": {runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gone.polder", request, response, "no such handler"},
		"hook of another": {runtimehooksv1.AfterClusterUpgrade, cluster("gold"), "gate.polder", &runtimehooksv1.AfterClusterUpgradeRequest{},
			&runtimehooksv1.AfterClusterUpgradeResponse{}, "it serves hook BeforeClusterUpgrade"},
		"request of another": {otherHook, cluster("gold"), "gate.polder", request, response, "request object"},
		"response of another": {
			runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.polder", request,
			&runtimehooksv1.BeforeClusterCreateResponse{}, "response object",
		},
		"no hook":     {nil, cluster("gold"), "gate.polder", request, response, "not a hook function"},
		"no request":  {runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.polder", nil, response, "validate request"},
		"no response": {runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.polder", request, nil, "validate response"},
		"no object":   {runtimehooksv1.BeforeClusterUpgrade, nil, "gate.polder", request, response, "object the hook is called for is nil"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := warmClient(t)
			handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, FailurePolicy: runtimev1.FailurePolicyIgnore, Func: succeedingHandler})
			err := c.CallExtension(t.Context(), tt.hook, tt.object, tt.name, tt.request, tt.response)
			checkError(t, err, tt.want)
		})
	}
}
