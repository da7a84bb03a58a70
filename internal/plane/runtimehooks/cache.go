package runtimehooks

import (
	"errors"
	"fmt"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
)

// readCache answers a call from the cache its caller passed along, if there is one and it has the answer. The key
// is computed from the request as the handler would see it.
func (one call) readCache(r *registration) (key string, found bool, err error) {
	if !one.options.WithCaching {
		return "", false, nil
	}
	if one.options.Cache == nil || one.options.CacheKeyFunc == nil {
		return "", false, errors.New("caching is asked for without a cache and a key function")
	}
	key = one.options.CacheKeyFunc(r.name, r.resourceVersion, one.request)
	entry, found := one.options.Cache.Has(key)
	if !found {
		return key, false, nil
	}
	var cached runtimehooksv1.ResponseObject
	if entry.Response != nil {
		cached, _ = entry.Response.DeepCopyObject().(runtimehooksv1.ResponseObject)
	}
	if err := copyResponse(one.response, cached); err != nil {
		return key, true, fmt.Errorf("reading the cache: %w", err)
	}
	return key, true, nil
}

// writeCache adds the response of a call, which must be a success, to the cache of its caller.
func (one call) writeCache(key string) {
	if !one.options.WithCaching {
		return
	}
	one.options.Cache.Add(runtimeclient.CallExtensionCacheEntry{
		CacheKey: key,
		Response: one.response.DeepCopyObject().(runtimehooksv1.ResponseObject),
	})
}
