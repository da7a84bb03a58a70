package runtimehooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HandlerFunc handles a hook. Request and response have the types of the hook it was registered for; all objects
// are its own. It returns nil and leaves the status empty or sets Success, or returns an error, which failure
// policy Ignore covers, or sets Failure, which it does not. It should return when ctx ends: nobody waits for it
// any longer.
type HandlerFunc func(ctx context.Context, forObject client.Object, request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject) error

// Handler is a hook handler in this process.
type Handler struct {
	// Name is unique among all handlers, of the form <handler>.<extension>, both DNS labels.
	Name string

	// Hook is the hook function of Cluster API, such as runtimehooksv1.BeforeClusterUpgrade.
	Hook runtimecatalog.Hook

	// Timeout bounds each call; at most 30 s. Zero means 10 s.
	Timeout time.Duration

	// FailurePolicy says what errors mean. Empty means Fail.
	FailurePolicy runtimev1.FailurePolicy

	// Func does the work. It may be called concurrently.
	Func HandlerFunc
}

// goOwner owns the handlers given to Handle.
const goOwner = "a handler of the plane itself"

// Handle adds a handler for all namespaces. It may be called at any time and stays for the
// life of the Client.
func (c *Client) Handle(h Handler) error {
	hook, err := c.validate(h)
	if err == nil {
		err = c.registry.add(&registration{
			name:     h.Name,
			owner:    goOwner,
			hook:     hook,
			selector: labels.Everything(),
			timeout:  h.timeout(),
			policy:   h.FailurePolicy,
			target:   newInProcessTarget(h.Func),
		})
	}
	if err != nil {
		return fmt.Errorf("adding hook handler %q: %w", h.Name, err)
	}
	return nil
}

func (c *Client) validate(h Handler) (runtimecatalog.GroupVersionHook, error) {
	var none runtimecatalog.GroupVersionHook
	if h.Func == nil {
		return none, errors.New("it has no function")
	}
	if err := validateName(h.Name); err != nil {
		return none, err
	}
	if h.Timeout < 0 || h.Timeout > maxTimeout {
		return none, fmt.Errorf("its timeout %s is not between 0 and %s", h.Timeout, maxTimeout)
	}
	switch h.FailurePolicy {
	case "", runtimev1.FailurePolicyFail, runtimev1.FailurePolicyIgnore:
	default:
		return none, fmt.Errorf("its failure policy %q is neither Fail nor Ignore", h.FailurePolicy)
	}
	hook, err := resolveHook(c.config.Catalog, h.Hook)
	if err != nil {
		return none, err
	}
	// Discovery is a hook too, but one that has no handlers.
	if _, err := newRequest(c.config.Catalog, hook); err != nil {
		return none, err
	}
	_, err = newResponse(c.config.Catalog, hook)
	return hook, err
}

// validateName keeps to the form that Cluster API takes apart again when an ExtensionConfig changes.
func validateName(name string) error {
	parts := strings.Split(name, ".")
	if len(parts) != 2 {
		return errors.New("its name is not of the form <handler>.<extension>")
	}
	for _, label := range parts {
		if problems := validation.IsDNS1123Label(label); len(problems) > 0 {
			return fmt.Errorf("%q in its name is not a DNS label: %s", label, strings.Join(problems, "; "))
		}
	}
	return nil
}

func (h Handler) timeout() time.Duration {
	if h.Timeout == 0 {
		return defaultTimeout
	}
	return h.Timeout
}
