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

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	ownreconcile "github.com/polder-kaas/polder/internal/reconcile"
)

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	touched := predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizerMissing(),
		ownreconcile.StatusLostPredicate(func(o *v1alpha1.WorkloadCluster) []metav1.Condition { return o.Status.Conditions }), markedProviderMissing(),
	)
	stackChanged := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, stackReadyChanged())
	return ctrl.NewControllerManagedBy(mgr).
		Named("workloadcluster-"+r.Provider.Name()).
		For(&v1alpha1.WorkloadCluster{}, builder.WithPredicates(touched)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestByName("")), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&csv1.ClusterAddon{}, handler.EnqueueRequestsFromMapFunc(requestByName(csv1.AddonPrefix)), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(requestByClusterLabel), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&csv1.ClusterStack{}, handler.EnqueueRequestsFromMapFunc(r.requestsForStack), builder.WithPredicates(stackChanged)).
		Watches(&csv1.ClusterStackRelease{}, handler.EnqueueRequestsFromMapFunc(r.requestsForStack), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.requestsForNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(o).
		Complete(r)
}

// stackReadyChanged hears of stacks that have another reason why they are ready, or not: who must act depends on it. Their
// status is written after each look at their source, and messages and times in it are nothing to wake all clusters for.
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

// markedProviderMissing hears of objects of which somebody says that nobody acts on them.
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

func finalizerMissing() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return len(o.GetFinalizers()) == 0
	})
}

// requestByName is for objects that are called as their WorkloadCluster, after a prefix.
func requestByName(prefix string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		name, ok := strings.CutPrefix(o.GetName(), prefix)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	}
}

// requestByClusterLabel is for objects of a cluster.
func requestByClusterLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// requestsForStack are those that could use a stack or its releases.
func (r *Reconciler) requestsForStack(ctx context.Context, o client.Object) []reconcile.Request {
	namespace := o.GetNamespace()
	if namespace == v1alpha1.CatalogueNamespace {
		namespace = "" // all of them
	}
	return r.listRequests(ctx, namespace)
}

func (r *Reconciler) requestsForNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.listRequests(ctx, o.GetName())
}

func (r *Reconciler) listRequests(ctx context.Context, namespace string) (out []reconcile.Request) {
	var l v1alpha1.WorkloadClusterList
	if err := r.Client.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return nil // it comes back by itself
	}
	for i := range l.Items {
		if l.Items[i].Spec.Provider == r.Provider.Name() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
	return out
}
