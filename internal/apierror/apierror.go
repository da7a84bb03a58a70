// Package apierror reads what an API server means by an error, where Kubernetes' own functions know only its
// code. It decides nothing: whoever is about to create, delete or forget an object asks here first whether the
// server has said anything about that object at all.
package apierror

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsObjectNotFound says whether the server has said of this very object that it does not exist. The resource is
// the plural name, as in pods.
//
// A 404 alone does not say so. An API server answers "404 page not found" for a kind that it does not serve yet,
// and so does a load balancer whose backends are away, or whatever else listens at that address. Clients turn
// that page into an error that apierrors.IsNotFound is true for, with the name that was asked for.
func IsObjectNotFound(err error, resource, name string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || IsUnexpectedResponse(err) {
		return false
	}
	s := status.Status()
	return s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Name == name &&
		isResource(s.Details.Kind, resource)
}

// IgnoreObjectNotFound returns nil if IsObjectNotFound is true, and err otherwise.
func IgnoreObjectNotFound(err error, resource, name string) error {
	if IsObjectNotFound(err, resource, name) {
		return nil
	}
	return err
}

// IgnoreNotFound returns nil if an API server has said that what a request names does not exist, and err
// otherwise. It is for writes to an object that was read before: what may be missing is that object, and then the
// write is not needed any more.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) && !IsUnexpectedResponse(err) {
		return nil
	}
	return err
}

// IsUnexpectedResponse says whether an answer was not written by an API server: a page, an empty body, another
// program's words.
func IsUnexpectedResponse(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// isResource compares the kind of a Status with a resource: API servers give the resource, caches of clients the
// kind.
func isResource(kind, resource string) bool {
	if strings.EqualFold(kind, resource) {
		return true
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return plural.Resource == resource
}
