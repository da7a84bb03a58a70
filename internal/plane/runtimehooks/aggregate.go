package runtimehooks

import (
	"context"
	"fmt"
	"strings"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CallAllExtensions calls the handlers GetAllExtensions names, one after the other, and sums their answers up in
// response: success, the shortest time to retry after, and all messages. It stops at the first error and then
// does not change response. Without handlers it succeeds.
func (c *Client) CallAllExtensions(
	ctx context.Context,
	hook runtimecatalog.Hook,
	forObject client.Object,
	request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) error {
	gvh, err := resolveHookCall(c.config.Catalog, hook, request, response)
	if err != nil {
		return fmt.Errorf("calling all extension handlers: %w", err)
	}
	names, err := c.GetAllExtensions(ctx, hook, forObject)
	if err != nil {
		return fmt.Errorf("calling all extension handlers: %w", err)
	}
	answers := make([]runtimehooksv1.ResponseObject, 0, len(names))
	for _, name := range names {
		answer, err := newResponse(c.config.Catalog, gvh)
		if err == nil {
			err = c.CallExtension(ctx, hook, forObject, name, request, answer)
		}
		if err != nil {
			return fmt.Errorf("calling all extension handlers of hook %s: %w", gvh.GroupHook(), err)
		}
		answers = append(answers, answer)
	}
	aggregateResponses(response, answers)
	return nil
}

// aggregateResponses sums up responses that are all a success.
func aggregateResponses(response runtimehooksv1.ResponseObject, answers []runtimehooksv1.ResponseObject) {
	var messages []string
	var retry int32
	for _, answer := range answers {
		retry = minRetryAfter(retry, retryAfter(answer))
		if message := answer.GetMessage(); message != "" {
			messages = append(messages, message)
		}
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage(strings.Join(messages, ", "))
	if r, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		r.SetRetryAfterSeconds(retry)
	}
}

// retryAfter is 0 for a response that does not ask to be called again, or cannot.
func retryAfter(response runtimehooksv1.ResponseObject) int32 {
	if r, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		return r.GetRetryAfterSeconds()
	}
	return 0
}

// minRetryAfter returns the lesser of two waits, where 0 means that none is asked for.
func minRetryAfter(a, b int32) int32 {
	if a == 0 {
		return b
	}
	if b == 0 {
		return a
	}
	return min(a, b)
}
