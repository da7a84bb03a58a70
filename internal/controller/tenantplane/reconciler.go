// Package tenantplane keeps the planes of tenants that have one of their own: it has them started, makes sure that each
// is the one that its namespace had before, gives them the stacks of the catalogue, and removes one when its namespace
// is deleted and nothing is left in it.
package tenantplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	polderreconcile "github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Times between looks at a plane of which nothing is told.
const (
	notReadyInterval = 10 * time.Second
	readyInterval    = 2 * time.Minute // after which a changed Secret of the catalogue is in it
	removeInterval   = 2 * time.Second
	callTimeout      = 20 * time.Second // of all calls of one reconciliation to one plane
)

// Reconciler keeps the planes of namespaces.
type Reconciler struct {
	Cache   client.Reader // namespaces and stacks of this plane
	Secrets client.Reader // reads Secrets by name
	Live    client.Client // writes namespaces
	Planes  tenancy.Planes
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("tenantplane").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetLabels()[v1alpha1.PlaneLabel] != ""
		}))).
		WatchesRawSource(source.Channel(tenancy.NewEvents(r.Planes), &handler.EnqueueRequestForObject{})).
		Watches(&csv1.ClusterStack{}, handler.EnqueueRequestsFromMapFunc(r.namespacesOfCatalogue),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(o).
		Complete(r)
}

// namespacesOfCatalogue maps a stack of the catalogue to all namespaces with a plane of their own.
func (r *Reconciler) namespacesOfCatalogue(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var l corev1.NamespaceList
	if o.GetNamespace() != v1alpha1.CatalogueNamespace ||
		r.Cache.List(ctx, &l, client.MatchingLabels{v1alpha1.PlaneLabel: string(v1alpha1.DedicatedPlane)}) != nil {
		return nil // the cache fails only while it starts or stops
	}
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: l.Items[i].Name}})
	}
	return out
}

// Reconcile brings the plane of one namespace to what it should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ns := &corev1.Namespace{}
	if err := r.Cache.Get(ctx, req.NamespacedName, ns); err != nil || !tenancy.HasOwnPlane(ns) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !ns.DeletionTimestamp.IsZero() {
		result, err := r.remove(ctx, ns)
		return polderreconcile.Finish(result, err, nil)
	}
	result, err := r.ensure(ctx, ns)
	return polderreconcile.Finish(result, err, nil)
}

// ensure has the plane of a namespace run, and gives it what it needs of this one.
func (r *Reconciler) ensure(ctx context.Context, ns *corev1.Namespace) (ctrl.Result, error) {
	if err := r.change(ctx, ns, func(ns *corev1.Namespace) {
		controllerutil.AddFinalizer(ns, v1alpha1.PlaneFinalizer)
	}); err != nil {
		return ctrl.Result{}, err
	}
	r.Planes.Ensure(ns)
	c, err := r.Planes.Client(ns.UID)
	if err != nil { // it says so itself
		return ctrl.Result{RequeueAfter: notReadyInterval}, nil
	}
	if known, err := r.identify(ctx, ns, c); err != nil || !known {
		return ctrl.Result{RequeueAfter: notReadyInterval}, err
	}
	if err := r.copyLabels(ctx, ns, c); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.copyCatalogue(ctx, c); err != nil {
		return ctrl.Result{}, fmt.Errorf("giving the plane of namespace %s the stacks of the catalogue: %w", ns.Name, err)
	}
	return ctrl.Result{RequeueAfter: readyInterval}, nil
}

// change changes a namespace, if that changes anything.
func (r *Reconciler) change(ctx context.Context, ns *corev1.Namespace, to func(*corev1.Namespace)) error {
	before := ns.DeepCopy()
	to(ns)
	if len(before.Finalizers) == len(ns.Finalizers) &&
		before.Annotations[v1alpha1.PlaneUIDAnnotation] == ns.Annotations[v1alpha1.PlaneUIDAnnotation] {
		return nil
	}
	// The cache may still have one that is gone.
	return client.IgnoreNotFound(
		r.Live.Patch(ctx, ns, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// identify makes sure that a plane is the one that the namespace has had all the time, and remembers that of a new one
// before anything is stored in it. An empty one, or that of another, is given no requests.
func (r *Reconciler) identify(ctx context.Context, ns *corev1.Namespace, c client.Client) (known bool, err error) {
	uid, err := planeUID(ctx, c)
	if err != nil {
		return false, err
	}
	switch was := ns.Annotations[v1alpha1.PlaneUIDAnnotation]; was {
	case uid:
	case "":
		if err := r.change(ctx, ns, func(ns *corev1.Namespace) {
			metav1.SetMetaDataAnnotation(&ns.ObjectMeta, v1alpha1.PlaneUIDAnnotation, uid)
		}); err != nil {
			return false, err
		}
	default:
		r.Planes.Reject(ns.UID, fmt.Sprintf(
			"its data are those of another plane, %s, and not of %s, which has its clusters; put back the right ones from a backup", uid, was))
		return false, nil
	}
	r.Planes.Accept(ns.UID)
	return true, nil
}

// planeUID returns what tells a plane from all others: the UID of a namespace that each has, made with its store.
func planeUID(ctx context.Context, c client.Reader) (string, error) {
	system := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", err
	}
	return string(system.UID), nil
}
