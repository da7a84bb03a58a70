package tenantplane

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// remove deletes all that is in the plane of a namespace that is being deleted, and then the plane. What cannot be
// reached is not forgotten: the namespace waits.
func (r *Reconciler) remove(ctx context.Context, ns *corev1.Namespace) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(ns, v1alpha1.PlaneFinalizer) {
		return ctrl.Result{}, nil
	}
	// Without a mark nothing was ever stored in it, or nothing is left.
	if ns.Annotations[v1alpha1.PlaneUIDAnnotation] == "" {
		if err := r.Planes.Remove(ctx, ns.UID); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.change(ctx, ns, func(ns *corev1.Namespace) {
			controllerutil.RemoveFinalizer(ns, v1alpha1.PlaneFinalizer)
		})
	}
	r.Planes.Ensure(ns)
	c, err := r.Planes.Client(ns.UID)
	if err != nil {
		return ctrl.Result{RequeueAfter: notReadyInterval}, nil // it says so itself
	}
	if known, err := r.identify(ctx, ns, c); err != nil || !known {
		return ctrl.Result{RequeueAfter: notReadyInterval}, err
	}
	its := &corev1.Namespace{}
	err = c.Get(ctx, client.ObjectKey{Name: ns.Name}, its)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.change(ctx, ns, func(ns *corev1.Namespace) {
			delete(ns.Annotations, v1alpha1.PlaneUIDAnnotation)
		})
	case err != nil:
		return ctrl.Result{}, err
	case its.DeletionTimestamp.IsZero():
		// The Tenant first: it would say that its namespace is lost.
		t := &v1alpha1.Tenant{}
		t.Name = its.Labels[v1alpha1.TenantLabel]
		if err := c.Delete(ctx, t); t.Name != "" && client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if err := c.Delete(ctx, its, client.Preconditions{UID: &its.UID}); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: removeInterval}, nil
}
