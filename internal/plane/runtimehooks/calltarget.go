package runtimehooks

import (
	"context"
	"fmt"
	"time"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// ignorableError is an error of a handler or of the way to it, which failure policy Ignore covers.
type ignorableError struct{ error }

func (f ignorableError) Unwrap() error { return f.error }

// callTarget calls the target of a registration within its timeout. The target sees the hook
// version it registered for, the caller gets an answer in the version it asked with.
func (c *Client) callTarget(ctx context.Context, r *registration, one call) (runtimehooksv1.ResponseObject, error) {
	ctx, cancel := withTimeout(ctx, r.timeout)
	defer cancel()

	request, err := c.convertRequest(ctx, r.hook, one)
	if err != nil {
		return nil, err
	}
	answer, err := newResponse(c.config.Catalog, r.hook)
	if err != nil {
		return nil, err
	}
	if err := r.target.call(ctx, r, one.forObject, request, answer); err != nil {
		return nil, err
	}
	return c.convertResponse(ctx, r.hook, one.hook, answer)
}

// withTimeout ends ctx after timeout with an error that says so.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s: %w", timeout, context.DeadlineExceeded))
}

// convertRequest gives the request the version, and the kind, that a handler expects.
func (c *Client) convertRequest(ctx context.Context, hook runtimecatalog.GroupVersionHook,
	one call) (runtimehooksv1.RequestObject, error) {
	request := one.request
	if hook.Version != one.hook.Version {
		converted, err := newRequest(c.config.Catalog, hook)
		if err != nil {
			return nil, err
		}
		if err := c.config.Catalog.Convert(request, converted, ctx); err != nil {
			return nil, fmt.Errorf("converting the request to %s: %w", hook.Version, err)
		}
		request = converted
	}
	gvk, err := c.config.Catalog.Request(hook)
	if err != nil {
		return nil, err
	}
	request.GetObjectKind().SetGroupVersionKind(gvk)
	return request, nil
}

// convertResponse gives the answer of a handler the version its caller expects.
func (c *Client) convertResponse(
	ctx context.Context,
	from, to runtimecatalog.GroupVersionHook,
	answer runtimehooksv1.ResponseObject,
) (runtimehooksv1.ResponseObject, error) {
	if from.Version == to.Version {
		return answer, nil
	}
	converted, err := newResponse(c.config.Catalog, to)
	if err != nil {
		return nil, err
	}
	if err := c.config.Catalog.Convert(answer, converted, ctx); err != nil {
		return nil, fmt.Errorf("converting the response from %s to %s: %w", from.Version, to.Version, err)
	}
	return converted, nil
}
