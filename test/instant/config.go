package instant

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// configReconciler sets which Secret has the bootstrap data of machines.
type configReconciler struct{ reconcilerBase }

// Reconcile fulfils the contract of bootstrap data. The Secret is the same for all machines of a cluster; it
// is made with the cluster's endpoint.
func (r *configReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, _, err := r.gather(ctx, configKind, req.NamespacedName)
	if s == nil || !s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return ctrl.Result{}, err
	}
	before := s.object.DeepCopy()
	err = errors.Join(
		s.setField(s.cluster.Name+bootstrapSuffix, "status", "dataSecretName"),
		s.setField(true, "status", "initialization", "dataSecretCreated"),
	)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.patchIfChanged(ctx, before, s.object)
}
