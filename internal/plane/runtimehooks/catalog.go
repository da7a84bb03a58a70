package runtimehooks

import (
	"fmt"
	"reflect"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// NewCatalog returns a new catalog with all hooks that Cluster API defines.
func NewCatalog() (*runtimecatalog.Catalog, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, fmt.Errorf("adding the hooks of Cluster API to a catalog: %w", err)
	}
	return catalog, nil
}

// resolveHook finds the group, version and name of a hook function. The catalog itself panics on
// what is not a function.
func resolveHook(catalog *runtimecatalog.Catalog, hook runtimecatalog.Hook) (runtimecatalog.GroupVersionHook, error) {
	if t := reflect.TypeOf(hook); t == nil || t.Kind() != reflect.Func {
		return runtimecatalog.GroupVersionHook{}, fmt.Errorf("%T is not a hook function", hook)
	}
	return catalog.GroupVersionHook(hook)
}

// resolveHookCall is resolveHook for a call: request and response must be those of the hook.
func resolveHookCall(
	catalog *runtimecatalog.Catalog,
	hook runtimecatalog.Hook,
	request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) (runtimecatalog.GroupVersionHook, error) {
	gvh, err := resolveHook(catalog, hook)
	if err != nil {
		return gvh, err
	}
	if err := catalog.ValidateRequest(gvh, request); err != nil {
		return gvh, err
	}
	return gvh, catalog.ValidateResponse(gvh, response)
}

func newRequest(catalog *runtimecatalog.Catalog,
	gvh runtimecatalog.GroupVersionHook) (runtimehooksv1.RequestObject, error) {
	o, err := catalog.NewRequest(gvh)
	if err != nil {
		return nil, err
	}
	request, ok := o.(runtimehooksv1.RequestObject)
	if !ok {
		return nil, fmt.Errorf("hook %s has no handlers: its request %T takes no settings", gvh, o)
	}
	return request, nil
}

func newResponse(catalog *runtimecatalog.Catalog,
	gvh runtimecatalog.GroupVersionHook) (runtimehooksv1.ResponseObject, error) {
	o, err := catalog.NewResponse(gvh)
	if err != nil {
		return nil, err
	}
	response, ok := o.(runtimehooksv1.ResponseObject)
	if !ok {
		return nil, fmt.Errorf("hook %s has no handlers: its response %T has no status", gvh, o)
	}
	return response, nil
}

// copyResponse makes dst equal to src, which must be of the same type and is not used afterwards.
func copyResponse(dst, src runtimehooksv1.ResponseObject) error {
	to, from := reflect.ValueOf(dst), reflect.ValueOf(src)
	if !from.IsValid() || from.Type() != to.Type() || from.IsNil() {
		return fmt.Errorf("response is a %T, want %T", src, dst)
	}
	to.Elem().Set(from.Elem())
	return nil
}
