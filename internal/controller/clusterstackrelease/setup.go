package clusterstackrelease

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/lineage"
	polderreconcile "github.com/polder-kaas/polder/internal/reconcile"
)

// SetupWithManager registers the reconciler. The manager's cache must have the index of lineage.IndexClustersByClass.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("clusterstackrelease").
		For(&csv1.ClusterStackRelease{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
				predicate.LabelChangedPredicate{}, finalizerMissing(), statusLost()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestForCluster),
			builder.WithPredicates(polderreconcile.ClassChangedPredicate())).
		Watches(&csv1.ClusterStack{}, handler.EnqueueRequestsFromMapFunc(r.requestsForStack),
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, reconcileRequested()))).
		WithOptions(o).
		Build(r)
	if err != nil {
		return err
	}
	r.watches = watches{mgr: mgr, controller: c, watched: map[schema.GroupVersionKind]bool{}}
	return nil
}

// statusLost passes releases that have lost their status.
func statusLost() predicate.Predicate {
	return polderreconcile.StatusLostPredicate(
		func(o *csv1.ClusterStackRelease) []metav1.Condition { return o.Status.Conditions },
	)
}

// finalizerMissing passes releases whose finalizer was removed.
func finalizerMissing() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return len(o.GetFinalizers()) == 0 })
}

// reconcileRequested passes stacks for which somebody asks to have the source checked now: a release may be waiting for
// it.
func reconcileRequested() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		return was[csv1.RequestedAtAnnotation] != is[csv1.RequestedAtAnnotation]
	}}
}

// requestForCluster maps a cluster to the release of its class, whose deletion may be waiting for the cluster.
func requestForCluster(_ context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*clusterv1.Cluster)
	if !ok {
		return nil
	}
	class, ok := lineage.ClassOfCluster(c)
	if !ok {
		return nil
	}
	key, ok := lineage.ReleaseOfClass(class)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// requestsForStack maps a stack, whose source may have changed, to its releases.
func (r *Reconciler) requestsForStack(ctx context.Context, o client.Object) []reconcile.Request {
	s, ok := o.(*csv1.ClusterStack)
	if !ok {
		return nil
	}
	var l csv1.ClusterStackReleaseList
	if err := r.Client.List(ctx, &l, client.InNamespace(s.Namespace)); err != nil {
		return nil // all releases are reconciled again after the interval anyway
	}
	var out []reconcile.Request
	for _, rel := range l.Items {
		if metav1.IsControlledBy(&rel, s) || lineage.IsReleaseOfStack(s, rel.Name) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&rel)})
		}
	}
	return out
}

// watches starts watches for the kinds that releases bring. They are not known beforehand.
type watches struct {
	mgr        ctrl.Manager
	controller controller.Controller

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// watchKinds watches the kinds of objects for changes of those that a release owns.
func (w *watches) watchKinds(refs []apply.Ref) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		gvk := schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
		if w.watched[gvk] {
			continue
		}
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(gvk)
		owner := handler.EnqueueRequestForOwner(w.mgr.GetScheme(), w.mgr.GetRESTMapper(), &csv1.ClusterStackRelease{},
			handler.OnlyControllerOwner())
		if err := w.controller.Watch(source.Kind[client.Object](w.mgr.GetCache(), o, owner)); err != nil {
			return err
		}
		w.watched[gvk] = true
	}
	return nil
}
