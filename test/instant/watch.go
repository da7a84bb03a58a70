package instant

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
)

// setupController registers the controller of a kind.
func (k kind) setupController(mgr ctrl.Manager, o controller.Options, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).Named(strings.ToLower(string(k))).
		For(k.newObject(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(k.requestsForCluster(mgr.GetCache())), builder.WithPredicates(endpointOrPauseChanged())).
		WithOptions(o).
		Complete(r)
}

// endpointOrPauseChanged passes the changes of a Cluster that somebody waits for: it has its endpoint, or is paused or
// goes on.
func endpointOrPauseChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // its parts come later, or are seen as they are
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1.Cluster)
			is, fits := e.ObjectNew.(*clusterv1.Cluster)
			return ok && fits && (was.Spec.ControlPlaneEndpoint != is.Spec.ControlPlaneEndpoint || ptr.Deref(was.Spec.Paused, false) != ptr.Deref(is.Spec.Paused, false))
		},
	}
}

// requestsForCluster maps a Cluster to requests for its objects of a kind.
func (k kind) requestsForCluster(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(groupVersion.WithKind(string(k) + "List"))
		if err := c.List(ctx, l, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()}); err != nil {
			return nil // a cache does not fail
		}
		var out []reconcile.Request
		for i := range l.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
		return out
	}
}

// scope is one object and its Cluster.
type scope struct {
	object     *unstructured.Unstructured
	cluster    *clusterv1.Cluster
	clusterKey types.NamespacedName // the cluster in the world
}

// gather reads an object and its Cluster. The scope is nil if there is nothing to do: the object is gone or going, is
// nobody's yet, or its Cluster is paused. It is gone when no plane has it any more.
func (b reconcilerBase) gather(ctx context.Context, k kind, name types.NamespacedName) (s *scope, gone bool, err error) {
	s = &scope{object: k.newObject(), cluster: &clusterv1.Cluster{}}
	if err := b.client.Get(ctx, name, s.object); err != nil {
		return nil, apierrors.IsNotFound(err) && b.claims.release(k, name), client.IgnoreNotFound(err)
	}
	b.claims.hold(k, name)
	owner := s.object.GetLabels()[clusterv1.ClusterNameLabel]
	if s.object.GetDeletionTimestamp() != nil || owner == "" {
		return nil, false, nil
	}
	if err := b.client.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: owner}, s.cluster); err != nil {
		return nil, false, err // the cache may be behind: an error brings it back
	}
	_, held := s.object.GetAnnotations()[clusterv1.PausedAnnotation]
	if held || ptr.Deref(s.cluster.Spec.Paused, false) {
		return nil, false, nil
	}
	s.clusterKey = types.NamespacedName{Namespace: name.Namespace, Name: s.cluster.Spec.InfrastructureRef.Name}
	return s, false, nil
}

// setField sets a field of the object, and makes its parents if need be.
func (s *scope) setField(value any, path ...string) error {
	return unstructured.SetNestedField(s.object.Object, value, path...)
}
