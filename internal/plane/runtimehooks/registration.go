package runtimehooks

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultTimeout = runtimehooksv1.DefaultHandlersTimeoutSeconds * time.Second
	maxTimeout     = 30 * time.Second
)

// registration is one handler and how to call it. It never changes once it is registered.
type registration struct {
	name            string
	owner           string // who may replace it, in words for an error message
	resourceVersion string // of the ExtensionConfig; empty for a Go handler
	hook            runtimecatalog.GroupVersionHook
	selector        labels.Selector
	settings        map[string]string
	timeout         time.Duration
	policy          runtimev1.FailurePolicy
	target          target
}

// target is what a registration calls: a Go function or an extension server. It returns soon after ctx ends,
// fills response on success, and returns as ignorableError what failure policy Ignore covers. Request and
// response are in the version of the registration and belong to this call; after an error nobody reads them.
type target interface {
	call(ctx context.Context, r *registration, forObject client.Object,
		request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error
}

// ownerOf names an ExtensionConfig as an owner. It differs from goOwner even for one without a name.
func ownerOf(config *runtimev1.ExtensionConfig) string {
	return fmt.Sprintf("ExtensionConfig %q", config.Name)
}

// registrations reads the handlers in the status of an ExtensionConfig: all of them, or an error. A clientConfig
// that cannot be used is an error when a handler is called, as Discover is the one to report it.
func (c *Client) registrations(config *runtimev1.ExtensionConfig) ([]*registration, error) {
	config = config.DeepCopy()
	selector, err := metav1.LabelSelectorAsSelector(config.Spec.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("reading its namespaceSelector: %w", err)
	}
	server, serverErr := c.newServer(config.Spec.ClientConfig)

	var registrations []*registration
	var errs []error
	for _, h := range config.Status.Handlers {
		gv, err := schema.ParseGroupVersion(h.RequestHook.APIVersion)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the apiVersion of handler %q: %w", h.Name, err))
			continue
		}
		registrations = append(registrations, &registration{
			name:            h.Name,
			owner:           ownerOf(config),
			resourceVersion: config.ResourceVersion,
			hook:            runtimecatalog.GroupVersionHook{Group: gv.Group, Version: gv.Version, Hook: h.RequestHook.Hook},
			selector:        selector,
			settings:        config.Spec.Settings,
			timeout:         timeoutOf(h.TimeoutSeconds),
			policy:          h.FailurePolicy,
			target: externalTarget{
				server:  server,
				err:     serverErr,
				handler: strings.TrimSuffix(h.Name, "."+config.Name),
			},
		})
	}
	if len(errs) > 0 {
		return nil, kerrors.NewAggregate(errs)
	}
	return registrations, nil
}

func (c *Client) allRegistrations(configs []runtimev1.ExtensionConfig) ([]*registration, error) {
	var all []*registration
	var errs []error
	for i := range configs {
		registrations, err := c.registrations(&configs[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", ownerOf(&configs[i]), err))
		}
		all = append(all, registrations...)
	}
	if len(errs) > 0 {
		return nil, kerrors.NewAggregate(errs)
	}
	return all, nil
}

// timeoutOf bounds the timeout in a status, whoever wrote it.
func timeoutOf(seconds int32) time.Duration {
	if seconds <= 0 {
		return defaultTimeout
	}
	return min(time.Duration(seconds)*time.Second, maxTimeout)
}
