package clusteraddon

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
)

// SetupWithManager registers the reconciler. The manager's cache must have the index of lineage.IndexClustersByClass.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusteraddon").
		For(&clusterv1.Cluster{}, builder.WithPredicates(clusterChanged())).
		Watches(&csv1.ClusterAddon{}, handler.EnqueueRequestsFromMapFunc(clusterOfAddon),
			builder.WithPredicates(addonChanged())).
		Watches(&csv1.ClusterStackRelease{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfRelease),
			builder.WithPredicates(releaseChanged())).
		Watches(&csv1.ClusterStack{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfStack),
			builder.WithPredicates(onlyUpdates(predicate.GenerationChangedPredicate{}))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfNamespace),
			builder.WithPredicates(onlyUpdates(predicate.LabelChangedPredicate{}))).
		WithOptions(o).
		Complete(r)
}

// clusterChanged passes changes that decide about add-ons, and not the many changes of a Cluster's status.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*clusterv1.Cluster)
		b, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		if !ok || !ok2 {
			return false
		}
		was, is := a.Status.Initialization.ControlPlaneInitialized, b.Status.Initialization.ControlPlaneInitialized
		initialized := (was != nil && *was) != (is != nil && *is)
		_, paused := a.Annotations[clusterv1.PausedAnnotation]
		_, still := b.Annotations[clusterv1.PausedAnnotation]
		prepared := a.Annotations[v1alpha1.PrepareAnnotation] != b.Annotations[v1alpha1.PrepareAnnotation]
		return a.Generation != b.Generation || initialized || paused != still || prepared
	}}
}

// addonChanged passes what others did to our objects. Their status only we write, so changes of it are dropped.
func addonChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if o, ok := e.ObjectNew.(*csv1.ClusterAddon); ok && len(o.Status.Conditions) == 0 {
				return true // it has lost its status
			}
			if !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				return true
			}
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				len(e.ObjectNew.GetOwnerReferences()) != len(e.ObjectOld.GetOwnerReferences())
		},
	}
}

// clusterOfAddon maps a ClusterAddon to its Cluster, which has the name without the prefix.
func clusterOfAddon(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := strings.CutPrefix(o.GetName(), csv1.AddonPrefix)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// releaseChanged passes a release that is created, becomes ready or not ready, or has another content or other objects.
func releaseChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*csv1.ClusterStackRelease)
		b, ok2 := e.ObjectNew.(*csv1.ClusterStackRelease)
		return ok && ok2 && (a.Status.Digest != b.Status.Digest || len(a.Status.Resources) != len(b.Status.Resources) ||
			ptr.Deref(a.Status.Ready, false) != ptr.Deref(b.Status.Ready, false))
	}}
}

// onlyUpdates is for objects whose creation and deletion are noticed by other watches.
func onlyUpdates(p predicate.Predicate) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: p.Update,
	}
}

// clustersOfStack maps a stack, which may serve other namespaces now, to the clusters of its releases.
func (r *Reconciler) clustersOfStack(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var l csv1.ClusterStackReleaseList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetNamespace())); err != nil {
		return nil // the clusters are reconciled again after the interval anyway
	}
	for i := range l.Items {
		if metav1.IsControlledBy(&l.Items[i], o) {
			out = append(out, r.clustersOfRelease(ctx, &l.Items[i])...)
		}
	}
	return out
}

// clustersOfNamespace maps a namespace, which other stacks may serve now, to its clusters.
func (r *Reconciler) clustersOfNamespace(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var l clusterv1.ClusterList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetName())); err != nil {
		return nil // as above
	}
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// clustersOfRelease maps a release to its clusters.
func (r *Reconciler) clustersOfRelease(ctx context.Context, o client.Object) []reconcile.Request {
	clusters, err := lineage.ClustersOfRelease(ctx, r.Client, client.ObjectKeyFromObject(o))
	if err != nil {
		return nil // as above
	}
	var out []reconcile.Request
	for _, c := range clusters {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
	}
	return out
}
