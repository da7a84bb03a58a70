package runtimehooks

import (
	"context"
	"errors"
	"fmt"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client calls the handlers of Runtime SDK hooks. It is safe for concurrent use; one Client
// serves all managers of the plane, and one of them warms it up.
type Client struct {
	config   Config
	registry registry
}

var _ runtimeclient.Client = (*Client)(nil)

// New returns a Client without handlers that is not ready yet.
func New(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("creating a hook client: %w", err)
	}
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("creating a hook client: %w", err)
	}
	return &Client{config: config, registry: registry{items: map[string]*registration{}}}, nil
}

// WarmUp registers the handlers of all ExtensionConfigs and makes the Client ready. It
// succeeds once; if it fails it has registered nothing and may be tried again.
func (c *Client) WarmUp(list *runtimev1.ExtensionConfigList) error {
	if list == nil {
		return errors.New("warming up extension handlers: the list of ExtensionConfigs is nil")
	}
	all, err := c.allRegistrations(list.Items)
	if err == nil {
		err = c.registry.warmUp(all)
	}
	if err != nil {
		return fmt.Errorf("warming up extension handlers: %w", err)
	}
	return nil
}

// IsReady reports whether WarmUp has succeeded.
func (c *Client) IsReady() bool { return c.registry.isReady() }

// Register replaces the handlers of an ExtensionConfig by those in its status. If it fails the handlers
// registered before stay, so that no upgrade is let through by mistake.
func (c *Client) Register(config *runtimev1.ExtensionConfig) error {
	if config == nil {
		return errors.New("registering an ExtensionConfig: it is nil")
	}
	registrations, err := c.registrations(config)
	if err == nil {
		err = c.registry.replace(ownerOf(config), registrations)
	}
	if err != nil {
		return fmt.Errorf("registering ExtensionConfig %q: %w", config.Name, err)
	}
	return nil
}

// Unregister removes the handlers of an ExtensionConfig; only its name is used. Unregistering one that is unknown
// is no error.
func (c *Client) Unregister(config *runtimev1.ExtensionConfig) error {
	if config == nil {
		return errors.New("unregistering an ExtensionConfig: it is nil")
	}
	if err := c.registry.replace(ownerOf(config), nil); err != nil {
		return fmt.Errorf("unregistering ExtensionConfig %q: %w", config.Name, err)
	}
	return nil
}

// GetAllExtensions names, in order, the handlers of a hook that are responsible for the
// namespace of forObject.
func (c *Client) GetAllExtensions(ctx context.Context, hook runtimecatalog.Hook,
	forObject client.Object) ([]string, error) {
	gvh, err := resolveHook(c.config.Catalog, hook)
	if err != nil {
		return nil, fmt.Errorf("listing extension handlers: %w", err)
	}
	names, err := c.matchingHandlerNames(ctx, gvh.GroupHook(), forObject)
	if err != nil {
		return nil, fmt.Errorf("listing extension handlers of hook %s: %w", gvh.GroupHook(), err)
	}
	return names, nil
}

func (c *Client) matchingHandlerNames(ctx context.Context, hook runtimecatalog.GroupHook,
	forObject client.Object) ([]string, error) {
	registrations, err := c.registry.list(hook)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, r := range registrations {
		selected, err := c.matchesNamespace(ctx, r.selector, forObject)
		if err != nil {
			return nil, fmt.Errorf("matching extension handler %q: %w", r.name, err)
		}
		if !selected {
			ctrl.LoggerFrom(ctx).V(4).Info("Leaving out extension handler: namespace not selected",
				"extensionHandler", r.name, "hook", hook.Hook, "namespace", forObject.GetNamespace())
			continue
		}
		names = append(names, r.name)
	}
	return names, nil
}
