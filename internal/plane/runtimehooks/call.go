package runtimehooks

import (
	"context"
	"errors"
	"fmt"
	"maps"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// call is one call of a handler.
type call struct {
	hook      runtimecatalog.GroupVersionHook // in the version the caller uses
	forObject client.Object
	name      string
	request   runtimehooksv1.RequestObject
	response  runtimehooksv1.ResponseObject
	options   runtimeclient.CallExtensionOptions
}

// CallExtension calls the handler with the given name and sets response to its answer, also when that is a
// failure. The package comment says which errors failure policy Ignore covers; response is then an empty success,
// which is not cached.
func (c *Client) CallExtension(
	ctx context.Context,
	hook runtimecatalog.Hook,
	forObject client.Object,
	name string,
	request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
	opts ...runtimeclient.CallExtensionOption,
) error {
	gvh, err := resolveHookCall(c.config.Catalog, hook, request, response)
	if err == nil {
		one := call{hook: gvh, forObject: forObject, name: name, request: request, response: response}
		for _, o := range opts {
			o.ApplyToOptions(&one.options)
		}
		log := ctrl.LoggerFrom(ctx).WithValues("extensionHandler", name, "hook", gvh.Hook)
		err = c.runCall(ctrl.LoggerInto(ctx, log), one)
	}
	if err != nil {
		return fmt.Errorf("calling extension handler %q: %w", name, err)
	}
	return nil
}

func (c *Client) runCall(ctx context.Context, one call) error {
	log := ctrl.LoggerFrom(ctx).V(4)
	r, err := c.findRegistration(ctx, one)
	if err != nil {
		return err
	}
	one.request = withSettings(one.request, r.settings)
	key, found, err := one.readCache(r)
	if found || err != nil {
		return err
	}

	log.Info("Calling extension handler")
	answer, err := c.callTarget(ctx, r, one)
	if f := (ignorableError{}); errors.As(err, &f) && r.policy == runtimev1.FailurePolicyIgnore {
		log.Info("Ignoring an error of the extension handler as its failure policy says", "error", err.Error())
		return c.setEmptySuccess(one)
	}
	if err != nil {
		return err
	}
	if err := copyResponse(one.response, answer); err != nil {
		return err
	}
	if err := checkResponseStatus(one.response); err != nil {
		return err
	}
	log.Info("Extension handler succeeded", "retryAfterSeconds", retryAfter(one.response))
	one.writeCache(key)
	return nil
}

// findRegistration finds the handler and checks that it serves this hook and this namespace.
func (c *Client) findRegistration(ctx context.Context, one call) (*registration, error) {
	r, err := c.registry.get(one.name)
	if err != nil {
		return nil, err
	}
	if r.hook.GroupHook() != one.hook.GroupHook() {
		return nil, fmt.Errorf("it serves hook %s, not %s", r.hook.GroupHook(), one.hook.GroupHook())
	}
	selected, err := c.matchesNamespace(ctx, r.selector, one.forObject)
	if err != nil {
		return nil, err
	}
	if !selected {
		return nil, fmt.Errorf("its namespaceSelector does not match namespace %q", one.forObject.GetNamespace())
	}
	return r, nil
}

// withSettings copies a request and adds the settings of the ExtensionConfig that it does not have itself.
func withSettings(request runtimehooksv1.RequestObject, settings map[string]string) runtimehooksv1.RequestObject {
	merged := map[string]string{}
	maps.Copy(merged, settings)
	maps.Copy(merged, request.GetSettings())
	request = request.DeepCopyObject().(runtimehooksv1.RequestObject)
	request.SetSettings(merged)
	return request
}

// setEmptySuccess makes the response of a call an empty success.
func (c *Client) setEmptySuccess(one call) error {
	empty, err := newResponse(c.config.Catalog, one.hook)
	if err != nil {
		return err
	}
	empty.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	return copyResponse(one.response, empty)
}

// checkResponseStatus turns any other status than Success into an error.
func checkResponseStatus(response runtimehooksv1.ResponseObject) error {
	switch response.GetStatus() {
	case runtimehooksv1.ResponseStatusSuccess:
		return nil
	case runtimehooksv1.ResponseStatusFailure:
		return fmt.Errorf("it answered with a failure: %s", response.GetMessage())
	default:
		return fmt.Errorf("it answered with unknown status %q: %s", response.GetStatus(), response.GetMessage())
	}
}
