package runtimehooks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	"sigs.k8s.io/cluster-api/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func byName(name, _ string, _ runtimehooksv1.RequestObject) string { return name }

func newCache(t *testing.T) cache.Cache[runtimeclient.CallExtensionCacheEntry] {
	t.Helper()
	return cache.New[runtimeclient.CallExtensionCacheEntry](t.Context(), time.Hour)
}

// variables returns a handler that counts its calls.
func variables(calls *int, err error) Handler {
	return Handler{
		Name: "variables.polder",
		Hook: runtimehooksv1.DiscoverVariables,
		Func: func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			*calls++
			response.(*runtimehooksv1.DiscoverVariablesResponse).Variables = []clusterv1.ClusterClassVariable{{Name: "kept"}}
			return err
		},
	}
}

func discoverVariables(ctx context.Context, c *Client, opts ...runtimeclient.CallExtensionOption) (*runtimehooksv1.DiscoverVariablesResponse, error) {
	response := &runtimehooksv1.DiscoverVariablesResponse{}
	err := c.CallExtension(ctx, runtimehooksv1.DiscoverVariables, cluster("gold"), "variables.polder", &runtimehooksv1.DiscoverVariablesRequest{}, response,
		opts...)
	return response, err
}

func TestCacheAnswersAgainAndAgainTheSame(t *testing.T) {
	c := warmClient(t)
	calls := 0
	handle(t, c, variables(&calls, nil))
	caching := runtimeclient.WithCaching{Cache: newCache(t), CacheKeyFunc: byName}
	want := &runtimehooksv1.DiscoverVariablesResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess},
		Variables:      []clusterv1.ClusterClassVariable{{Name: "kept"}},
	}
	for i := range 3 {
		got, err := discoverVariables(t.Context(), c, caching)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("response %d (-want +got):\n%s", i, diff)
		}
		got.Variables[0].Name = "changed" // what goes in and what comes out belongs to the caller
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
	if _, err := discoverVariables(t.Context(), c); err != nil || calls != 2 {
		t.Errorf("%d calls and error %v without the option, want one call more", calls, err)
	}
}

func TestCacheKey(t *testing.T) {
	config := startGateServer(t, answer(success))
	config.Spec.Settings = map[string]string{"a": "config", "b": "config"}
	c := warmClient(t, config)
	request := upgrade()
	request.Settings = map[string]string{"b": "request"}
	var got []any
	store := newCache(t)
	caching := runtimeclient.WithCaching{Cache: store, CacheKeyFunc: func(name, resourceVersion string, request runtimehooksv1.RequestObject) string {
		got = append(got, name, resourceVersion, request.GetSettings())
		return "key"
	}}
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	if err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.ext", request, response, caching); err != nil {
		t.Fatal(err)
	}
	want := []any{"gate.ext", "7", map[string]string{"a": "config", "b": "request"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments of the key function (-want +got):\n%s", diff)
	}
	if _, ok := store.Has("key"); !ok || store.Len() != 1 {
		t.Errorf("the cache has %d entries, want one under the key", store.Len())
	}
}

func TestCacheKeepsSuccessOnly(t *testing.T) {
	tests := map[string]struct {
		change func(*Handler)
		want   string
	}{
		"error":         {func(*Handler) {}, "no disk"},
		"ignored error": {func(h *Handler) { h.FailurePolicy = runtimev1.FailurePolicyIgnore }, ""},
		"failure": {func(h *Handler) {
			h.Func = func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
				response.SetStatus(runtimehooksv1.ResponseStatusFailure)
				return nil
			}
		}, "with a failure"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := warmClient(t)
			calls := 0
			h := variables(&calls, errors.New("no disk"))
			tt.change(&h)
			handle(t, c, h)
			store := newCache(t)
			_, err := discoverVariables(t.Context(), c, runtimeclient.WithCaching{Cache: store, CacheKeyFunc: byName})
			checkError(t, err, tt.want)
			if store.Len() != 0 {
				t.Errorf("the cache has %d entries", store.Len())
			}
		})
	}
}

func TestCacheIsChecked(t *testing.T) {
	holding := func(response runtimehooksv1.ResponseObject) cache.Cache[runtimeclient.CallExtensionCacheEntry] {
		store := newCache(t)
		store.Add(runtimeclient.CallExtensionCacheEntry{CacheKey: "variables.polder", Response: response})
		return store
	}
	tests := map[string]struct {
		caching runtimeclient.WithCaching
		want    string
	}{
		"no cache":        {runtimeclient.WithCaching{CacheKeyFunc: byName}, "without a cache"},
		"no key function": {runtimeclient.WithCaching{Cache: newCache(t)}, "without a cache"},
		"response of another hook": {runtimeclient.WithCaching{Cache: holding(&runtimehooksv1.BeforeClusterUpgradeResponse{}), CacheKeyFunc: byName},
			"response is a *v1alpha1.BeforeClusterUpgradeResponse, want *v1alpha1.DiscoverVariablesResponse"},
		"no response": {runtimeclient.WithCaching{Cache: holding(nil), CacheKeyFunc: byName}, "response is a <nil>"},
		"nil response": {runtimeclient.WithCaching{Cache: holding((*runtimehooksv1.DiscoverVariablesResponse)(nil)), CacheKeyFunc: byName},
			"response is a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := warmClient(t)
			calls := 0
			handle(t, c, variables(&calls, nil))
			_, err := discoverVariables(t.Context(), c, tt.caching)
			checkError(t, err, tt.want)
			if calls != 0 {
				t.Error("the handler was called")
			}
		})
	}
}

func TestCacheIsNoWayAroundSelector(t *testing.T) {
	config := startGateServer(t, answer(success))
	config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	c := warmClient(t, config)
	caching := runtimeclient.WithCaching{Cache: newCache(t), CacheKeyFunc: byName}
	call := func(namespace string) error {
		return c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster(namespace), "gate.ext", upgrade(),
			&runtimehooksv1.BeforeClusterUpgradeResponse{}, caching)
	}
	checkError(t, call("gold"), "")
	checkError(t, call("plain"), "namespaceSelector does not match")
}
