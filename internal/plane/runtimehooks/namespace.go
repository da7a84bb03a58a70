package runtimehooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lookupTimeout bounds the read of a Namespace, which a cache usually answers at once.
const lookupTimeout = 10 * time.Second

// matchesNamespace reports whether selector matches the namespace of forObject. An empty selector
// matches without a lookup; a nil labelSelector, which the API defaults away, matches
// nothing.
func (c *Client) matchesNamespace(ctx context.Context, selector labels.Selector,
	forObject client.Object) (bool, error) {
	if forObject == nil {
		return false, errors.New("the object the hook is called for is nil")
	}
	if selector.Empty() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.config.Reader.Get(ctx, client.ObjectKey{Name: forObject.GetNamespace()}, namespace); err != nil {
		return false, fmt.Errorf("getting namespace %q: %w", forObject.GetNamespace(), err)
	}
	return selector.Matches(labels.Set(namespace.GetLabels())), nil
}
