package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// checkConfinement refuses the clusters of customers where the kernel offers too little to confine them: they would run
// beside the plane's own files, as the plane's own user.
func (r *Reconciler) checkConfinement(ctx context.Context, s *scope) error {
	if r.Confinement == nil || r.AllowUnconfined {
		return nil
	}
	offered := r.Confinement()
	if offered.Complete() {
		return nil
	}
	ns := &corev1.Namespace{}
	if err := r.APIReader.Get(ctx, types.NamespacedName{Name: s.local.Namespace}, ns); err != nil {
		return fmt.Errorf("finding out whose namespace %s is: %w", s.local.Namespace, err)
	}
	if _, customer := ns.Labels[v1alpha1.CustomerLabel]; !customer {
		return nil
	}
	err := fmt.Errorf("namespace %s is a customer's, and this kernel cannot confine local clusters (it offers %s); "+
		"the platform operator can use another machine, or start polderd with --local-unconfined if the customer is trusted",
		s.local.Namespace, offered)
	s.setHostRunning(metav1.ConditionFalse, infrav1.NotSupportedReason, err.Error())
	return reconcile.Terminal(err)
}
