package rest

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestWriteCounted(t *testing.T) {
	busy := apierrors.NewConflict(corev1.Resource("resourcequotas"), "polder-tenant", errors.New("modified"))
	changed := apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("workloadclusters").GroupResource(), "one", errors.New("modified"))
	for name, tt := range map[string]struct {
		answers []error // the last one is given again and again
		calls   int
		want    error
	}{
		"at once":           {[]error{nil}, 1, nil},
		"after a while":     {[]error{busy, busy, busy, nil}, 4, nil},
		"never":             {[]error{busy}, quotaTries, busy},
		"its own conflict":  {[]error{changed}, 1, changed},
		"another refusal":   {[]error{busy, apierrors.NewBadRequest("x")}, 2, apierrors.NewBadRequest("x")},
		"not of Kubernetes": {[]error{errors.ErrUnsupported}, 1, errors.ErrUnsupported},
	} {
		calls := 0
		_, err := writeCounted(t.Context(), func() (*unstructured.Unstructured, error) {
			calls++
			return nil, tt.answers[min(calls, len(tt.answers))-1]
		})
		if calls != tt.calls || (err == nil) != (tt.want == nil) || err != nil && err.Error() != tt.want.Error() {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}
