package follow

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
	return errors.As(err, &transport) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.Is(err, context.DeadlineExceeded)
}

// IsAccessDenied says of an error that the plane does not know who asks, or does not let them.
func IsAccessDenied(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// PlaneSource are objects of a kind in a plane: all of a namespace, or one of them.
type PlaneSource struct {
	Objects dynamic.ResourceInterface
	Name    string // that of the one; empty is all
}

var _ Source = PlaneSource{}

// Options are those of its lists and watches: they select by name.
func (s PlaneSource) Options() (o metav1.ListOptions) {
	if s.Name != "" {
		o.FieldSelector = "metadata.name=" + s.Name
	}
	return o
}

// List reads all of them, in one answer.
func (s PlaneSource) List(ctx context.Context) (*unstructured.UnstructuredList, error) {
	return s.Objects.List(ctx, s.Options())
}

// Watch begins after a version of a list.
func (s PlaneSource) Watch(ctx context.Context, version string) (watch.Interface, error) {
	o := s.Options()
	o.ResourceVersion, o.AllowWatchBookmarks = version, true
	return s.Objects.Watch(ctx, o)
}
