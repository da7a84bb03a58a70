package rest

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// quotaTries is how often something is written beside others who write in the same namespace.
const quotaTries = 10

// writeCounted writes something that a quota counts. Where others write at the same moment, Kubernetes counts three
// times and then answers with a conflict about the quota, which is none of the caller's.
func writeCounted(ctx context.Context,
	write func() (*unstructured.Unstructured, error)) (u *unstructured.Unstructured, err error) {
	for range quotaTries {
		u, err = write()
		if !isQuotaConflict(err) || ctx.Err() != nil {
			break
		}
	}
	return u, err
}

// isQuotaConflict reports whether something was not written since its quota was, meanwhile.
func isQuotaConflict(err error) bool {
	var s apierrors.APIStatus
	return apierrors.IsConflict(err) && errors.As(err, &s) && s.Status().Details != nil &&
		s.Status().Details.Kind == "resourcequotas"
}
