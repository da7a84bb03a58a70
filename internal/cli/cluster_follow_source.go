package cli

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// isExpired says that a watch cannot go on from where it was.
func isExpired(err error) bool {
	return apierrors.IsGone(err) || apierrors.IsResourceExpired(err)
}

// isTransient says that it may be over in a while, as when the plane is started anew.
func isTransient(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.Is(err, context.DeadlineExceeded)
}

// isAccessDenied says that the plane does not know who asks, or does not let them.
func isAccessDenied(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// planeSource are objects of a plane.
type planeSource struct {
	objects dynamic.ResourceInterface
	name    string // a name; empty is all
}

var _ objectSource = planeSource{}

func (s planeSource) options() (o metav1.ListOptions) {
	if s.name != "" {
		o.FieldSelector = "metadata.name=" + s.name
	}
	return o
}

func (s planeSource) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	return s.objects.List(ctx, s.options())
}

func (s planeSource) watch(ctx context.Context, version string) (watch.Interface, error) {
	o := s.options()
	o.ResourceVersion, o.AllowWatchBookmarks = version, true
	return s.objects.Watch(ctx, o)
}
