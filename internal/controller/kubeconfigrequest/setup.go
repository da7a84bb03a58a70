package kubeconfigrequest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/polder-kaas/polder/api/v1alpha1"
	polderreconcile "github.com/polder-kaas/polder/internal/reconcile"
)

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("kubeconfigrequest").
		For(&v1alpha1.KubeconfigRequest{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, statusLost()))).
		Watches(&v1alpha1.WorkloadCluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsForCluster),
			builder.WithPredicates(createdOrDeleted())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.openRequestsForCluster),
			builder.WithPredicates(clusterChanged())).
		WithOptions(o).
		Complete(r)
}

// statusLost passes requests that have lost their status.
func statusLost() predicate.Predicate {
	return polderreconcile.StatusLostPredicate(
		func(o *v1alpha1.KubeconfigRequest) []metav1.Condition { return o.Status.Conditions },
	)
}

// createdOrDeleted passes WorkloadClusters that come or go. What becomes of them meanwhile shows in their Clusters.
func createdOrDeleted() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// clusterChanged passes changes that a request may wait for, and not the many changes of a Cluster's status.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, ok := e.ObjectOld.(*clusterv1.Cluster)
			b, ok2 := e.ObjectNew.(*clusterv1.Cluster)
			if !ok || !ok2 {
				return false
			}
			return isControlPlaneInitialized(a) != isControlPlaneInitialized(b) ||
				a.Spec.ControlPlaneEndpoint != b.Spec.ControlPlaneEndpoint || controllerUID(a) != controllerUID(b)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// isControlPlaneInitialized reports whether the control plane of a Cluster has been initialized.
func isControlPlaneInitialized(c *clusterv1.Cluster) bool {
	return ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false)
}

// controllerUID returns the UID of the Cluster's controller reference; "" if it has none.
func controllerUID(c *clusterv1.Cluster) types.UID {
	if ref := metav1.GetControllerOf(c); ref != nil {
		return ref.UID
	}
	return ""
}

// openRequestsForCluster maps a cluster to the requests for it that have no credentials yet.
func (r *Reconciler) openRequestsForCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.findRequests(ctx, cluster, func(o *v1alpha1.KubeconfigRequest) bool { return !isAnswered(o) })
}

// requestsForCluster maps a cluster to all requests for it: those with credentials go with it.
func (r *Reconciler) requestsForCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.findRequests(ctx, cluster, func(*v1alpha1.KubeconfigRequest) bool { return true })
}

func (r *Reconciler) findRequests(ctx context.Context, cluster client.Object,
	wanted func(*v1alpha1.KubeconfigRequest) bool) []reconcile.Request {
	var l v1alpha1.KubeconfigRequestList
	if err := r.Client.List(ctx, &l, client.InNamespace(cluster.GetNamespace())); err != nil {
		return nil // they are reconciled again anyway
	}
	var out []reconcile.Request
	for i := range l.Items {
		if o := &l.Items[i]; o.Spec.ClusterName == cluster.GetName() && wanted(o) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return out
}
