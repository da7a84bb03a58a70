// Package customernamespace gives each namespace of a customer a ResourceQuota. It makes one that is missing and
// changes none: what the platform operator writes into it stays.
package customernamespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
)

// Reconciler makes the ResourceQuotas of customers' namespaces.
type Reconciler struct {
	Client client.Client // reads from a cache
	Live   client.Reader // reads from the API server
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("customernamespace").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(wantsQuota))).
		Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(namespaceOf),
			builder.WithPredicates(onlyDeleted())).
		WithOptions(o).
		Complete(r)
}

// Reconcile makes the ResourceQuota of one namespace if it is missing.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ns := &corev1.Namespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !wantsQuota(ns) {
		return ctrl.Result{}, nil
	}
	q := quota.Default(ns.Name)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(q), &corev1.ResourceQuota{})
	if apierrors.IsNotFound(err) {
		err = r.createQuota(ctx, q)
	}
	// Somebody else was faster, or the namespace is being deleted, which the cache does not know yet.
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// createQuota creates the quota if the namespace is still to have it. The cache may not know that it is not: who takes
// the label away and then the quota would find it again, and nobody else removes it.
func (r *Reconciler) createQuota(ctx context.Context, q *corev1.ResourceQuota) error {
	var l corev1.NamespaceList // a list of one: there is no right to get
	if err := r.Live.List(ctx, &l, client.MatchingFields{"metadata.name": q.Namespace}); err != nil {
		return err
	}
	if len(l.Items) == 0 || !wantsQuota(&l.Items[0]) {
		return nil
	}
	return r.Client.Create(ctx, q)
}

// wantsQuota reports whether a namespace is a customer's, and its quota is left to us.
func wantsQuota(o client.Object) bool {
	labels := o.GetLabels()
	_, ok := labels[v1alpha1.CustomerLabel]
	return ok && labels[v1alpha1.QuotaLabel] != v1alpha1.QuotaOwn && o.GetDeletionTimestamp().IsZero()
}

// namespaceOf maps a ResourceQuota of our name to its namespace.
func namespaceOf(_ context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != v1alpha1.DefaultQuotaName {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
}

// onlyDeleted passes deletions.
func onlyDeleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
