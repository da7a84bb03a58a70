package workloadcluster

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/polder-kaas/polder/api/v1alpha1"
	ownreconcile "github.com/polder-kaas/polder/internal/reconcile"
)

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	touched := predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizerMissing(),
		ownreconcile.StatusLostPredicate(func(o *v1alpha1.WorkloadCluster) []metav1.Condition { return o.Status.Conditions }),
		markedProviderMissing(),
	)
	stackChanged := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, stackReadyChanged())
	b := ctrl.NewControllerManagedBy(mgr).
		Named("workloadcluster-"+r.Provider.Name()).
		For(&v1alpha1.WorkloadCluster{}, builder.WithPredicates(touched)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestByName("")),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&csv1.ClusterAddon{}, handler.EnqueueRequestsFromMapFunc(requestByName(csv1.AddonPrefix)),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(requestByClusterLabel),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&csv1.ClusterStack{}, handler.EnqueueRequestsFromMapFunc(r.requestsForStack),
			builder.WithPredicates(stackChanged)).
		Watches(&csv1.ClusterStackRelease{}, handler.EnqueueRequestsFromMapFunc(r.requestsForStack),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.requestsForNamespace),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(o)
	if r.Prober != nil {
		b = b.WatchesRawSource(source.Channel(r.Prober.Changed(), &handler.EnqueueRequestForObject{}))
	}
	return b.Complete(r)
}

// stackReadyChanged passes stacks whose Ready condition has another status or reason: who must act depends on it. Their
// status is written after each check of their source, and messages and times in it are no reason to reconcile all
// clusters.
func stackReadyChanged() predicate.Predicate {
	of := func(o client.Object) (metav1.ConditionStatus, string) {
		s, ok := o.(*csv1.ClusterStack)
		if !ok {
			return "", ""
		}
		c := meta.FindStatusCondition(s.Status.Conditions, csv1.ConditionReady)
		if c == nil {
			return "", ""
		}
		return c.Status, c.Reason
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, why := of(e.ObjectOld)
		is, because := of(e.ObjectNew)
		return was != is || why != because
	}}
}

// markedProviderMissing passes objects that are reported to have no provider. We are the provider, so that is to be
// corrected.
func markedProviderMissing() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		w, ok := o.(*v1alpha1.WorkloadCluster)
		if !ok {
			return false
		}
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == v1alpha1.ReasonProviderMissing
	})
}

// finalizerMissing passes objects whose finalizer was removed.
func finalizerMissing() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return len(o.GetFinalizers()) == 0
	})
}

// requestByName maps objects to the WorkloadCluster that has their name without a prefix.
func requestByName(prefix string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		name, ok := strings.CutPrefix(o.GetName(), prefix)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	}
}

// requestByClusterLabel maps objects of a cluster to its WorkloadCluster, by Cluster API's label.
func requestByClusterLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// requestsForStack maps a stack or a release to the WorkloadClusters that could use it.
func (r *Reconciler) requestsForStack(ctx context.Context, o client.Object) []reconcile.Request {
	namespace := o.GetNamespace()
	if namespace == v1alpha1.CatalogueNamespace {
		namespace = "" // all namespaces
	}
	return r.listRequests(ctx, namespace)
}

// requestsForNamespace maps a namespace, which other stacks may serve now, to its WorkloadClusters.
func (r *Reconciler) requestsForNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.listRequests(ctx, o.GetName())
}

// listRequests returns requests for all WorkloadClusters of this provider in a namespace.
func (r *Reconciler) listRequests(ctx context.Context, namespace string) (out []reconcile.Request) {
	var l v1alpha1.WorkloadClusterList
	if err := r.Client.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return nil // the cache fails only while it starts or stops
	}
	for i := range l.Items {
		if l.Items[i].Spec.Provider == r.Provider.Name() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
	return out
}
