package runtimehooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Discover asks an extension server for its handlers and returns a copy of the
// ExtensionConfig with them in its status, sorted by name. It registers nothing.
func (c *Client) Discover(ctx context.Context, config *runtimev1.ExtensionConfig) (*runtimev1.ExtensionConfig, error) {
	if config == nil {
		return nil, errors.New("discovering an extension: the ExtensionConfig is nil")
	}
	ctrl.LoggerFrom(ctx).V(4).Info("Discovering extension", "extensionConfig", config.Name)
	discovered, err := c.discover(ctx, config.DeepCopy())
	if err != nil {
		return nil, fmt.Errorf("discovering extension %q: %w", config.Name, err)
	}
	return discovered, nil
}

func (c *Client) discover(ctx context.Context, config *runtimev1.ExtensionConfig) (*runtimev1.ExtensionConfig, error) {
	response, err := c.requestDiscovery(ctx, config.Spec.ClientConfig)
	if err != nil {
		return nil, err
	}
	if err := checkResponseStatus(response); err != nil {
		return nil, err
	}
	config.Status.Handlers, err = parseHandlers(c.config.Catalog, config.Name, response)
	if err != nil {
		return nil, fmt.Errorf("reading its handlers: %w", err)
	}
	// Register would refuse them too, but only an error of Discover gets into the status.
	registrations, err := c.registrations(config)
	if err != nil {
		return nil, err
	}
	return config, c.registry.checkReplace(registrations)
}

func (c *Client) requestDiscovery(ctx context.Context,
	config runtimev1.ClientConfig) (*runtimehooksv1.DiscoveryResponse, error) {
	hook, err := resolveHook(c.config.Catalog, runtimehooksv1.Discovery)
	if err != nil {
		return nil, err
	}
	kind, err := c.config.Catalog.Request(hook)
	if err != nil {
		return nil, err
	}
	server, err := c.newServer(config)
	if err != nil {
		return nil, err
	}
	defer server.http.CloseIdleConnections()
	ctx, cancel := withTimeout(ctx, defaultTimeout)
	defer cancel()

	request, response := &runtimehooksv1.DiscoveryRequest{}, &runtimehooksv1.DiscoveryResponse{}
	request.SetGroupVersionKind(kind)
	return response, server.post(ctx, server.url(hook, "", defaultTimeout), request, response)
}

// parseHandlers translates and checks the handlers a server lists. It reports everything that is wrong, or
// returns handlers that can all be registered.
func parseHandlers(catalog *runtimecatalog.Catalog, extension string,
	response *runtimehooksv1.DiscoveryResponse) ([]runtimev1.ExtensionHandler, error) {
	handlers := []runtimev1.ExtensionHandler{}
	var errs []error
	seen := map[string]bool{}
	for _, h := range response.Handlers {
		if seen[h.Name] {
			errs = append(errs, fmt.Errorf("handler %q is listed twice", h.Name))
		}
		seen[h.Name] = true
		h = withDefaults(h)
		errs = append(errs, validateDiscovered(catalog, h)...)
		handlers = append(handlers, runtimev1.ExtensionHandler{
			Name:           h.Name + "." + extension,
			RequestHook:    runtimev1.GroupVersionHook(h.RequestHook),
			TimeoutSeconds: *h.TimeoutSeconds,
			FailurePolicy:  runtimev1.FailurePolicy(*h.FailurePolicy),
		})
	}
	if len(errs) > 0 {
		return nil, kerrors.NewAggregate(errs)
	}
	slices.SortFunc(handlers, func(a, b runtimev1.ExtensionHandler) int { return cmp.Compare(a.Name, b.Name) })
	return handlers, nil
}

// withDefaults fills in what a server may leave out.
func withDefaults(h runtimehooksv1.ExtensionHandler) runtimehooksv1.ExtensionHandler {
	if h.TimeoutSeconds == nil {
		h.TimeoutSeconds = new(int32(runtimehooksv1.DefaultHandlersTimeoutSeconds))
	}
	if h.FailurePolicy == nil {
		h.FailurePolicy = new(runtimehooksv1.FailurePolicyFail)
	}
	return h
}

// validateDiscovered lists what is wrong with one handler.
func validateDiscovered(catalog *runtimecatalog.Catalog, h runtimehooksv1.ExtensionHandler) []error {
	var errs []error
	if reasons := validation.IsDNS1123Label(h.Name); len(reasons) > 0 {
		errs = append(errs, fmt.Errorf("handler name %q is not a DNS label: %s", h.Name, strings.Join(reasons, "; ")))
	}
	if most := int32(maxTimeout.Seconds()); *h.TimeoutSeconds < 0 || *h.TimeoutSeconds > most {
		errs = append(errs, fmt.Errorf("handler %q: timeoutSeconds %d is not between 0 and %d", h.Name, *h.TimeoutSeconds,
			most))
	}
	if p := *h.FailurePolicy; p != runtimehooksv1.FailurePolicyFail && p != runtimehooksv1.FailurePolicyIgnore {
		errs = append(errs, fmt.Errorf("handler %q: failurePolicy %q is neither Fail nor Ignore", h.Name, p))
	}
	gv, err := schema.ParseGroupVersion(h.RequestHook.APIVersion)
	if err != nil {
		return append(errs, fmt.Errorf("handler %q: reading its apiVersion: %w", h.Name, err))
	}
	hook := runtimecatalog.GroupVersionHook{Group: gv.Group, Version: gv.Version, Hook: h.RequestHook.Hook}
	if !catalog.IsHookRegistered(hook) {
		errs = append(errs, fmt.Errorf("handler %q: hook %s is not known", h.Name, hook))
	}
	return errs
}
