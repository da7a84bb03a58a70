// Package clusterstack reconciles ClusterStacks: it checks their sources and keeps the releases that are wanted or in
// use.
package clusterstack

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases"
)

// Reconciler reconciles ClusterStacks. All fields are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache that has the index of lineage.IndexClustersByClass
	Releases *releases.Library
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Interval time.Duration // between checks of a source, unless a stack says otherwise

	sources reconcile.Memory[types.NamespacedName, sourceState]
}

// scope is what one run works on.
type scope struct {
	object        *csv1.ClusterStack
	tracked       *reconcile.Tracked[*csv1.ClusterStack]
	conditions    reconcile.Conditions
	source        sourceState                // what is known of the source
	releases      []csv1.ClusterStackRelease // of this stack
	inUse         map[string]bool            // names of releases with clusters
	problems      []string                   // what people must mend before all releases can be synced
	problemReason string                     // of the first problem
}

// newScope returns the scope of a stack that was just read.
func newScope(o *csv1.ClusterStack) *scope {
	return &scope{
		object: o, tracked: reconcile.Track(o),
		conditions: reconcile.NewConditions(o, &o.Status.Conditions, csv1.ReasonAvailable),
	}
}

// Reconcile brings the releases of one stack closer to what is wanted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &csv1.ClusterStack{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		if apierrors.IsNotFound(err) {
			r.sources.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its releases are garbage-collected, as soon as no cluster uses them
	}
	s := newScope(o)
	_, err := reconcile.Run(ctx, s, r.checkSource, r.gatherReleases, r.syncReleases, r.publishStatus)
	r.summarize(s)
	// Even without a watch event: the source has none, so it is polled.
	result := ctrl.Result{RequeueAfter: max(s.source.nextCheck.Sub(r.Clock.Now()), time.Second)}
	return reconcile.Finish(result, err, s.tracked.Write(ctx, r.Client))
}

// gatherReleases finds the releases of the stack, and which of them clusters use.
func (r *Reconciler) gatherReleases(ctx context.Context, s *scope) error {
	var l csv1.ClusterStackReleaseList
	if err := r.Client.List(ctx, &l, client.InNamespace(s.object.Namespace)); err != nil {
		return err
	}
	s.inUse = map[string]bool{}
	for _, rel := range l.Items {
		if !belongsToStack(s.object, &rel) {
			continue
		}
		users, err := lineage.ClustersOfRelease(ctx, r.Client, client.ObjectKeyFromObject(&rel))
		if err != nil {
			return err
		}
		s.inUse[rel.Name] = len(users) > 0
		s.releases = append(s.releases, rel)
	}
	return nil
}

// belongsToStack reports whether a release is the stack's: by its controller or, if that was removed, by its name.
// Whatever its controller is, a release of another line is not.
func belongsToStack(s *csv1.ClusterStack, r *csv1.ClusterStackRelease) bool {
	if owner := metav1.GetControllerOf(r); owner != nil {
		_, ok := lineage.ReleaseInLine(s, r.Name)
		return ok && owner.UID == s.UID
	}
	return lineage.IsReleaseOfStack(s, r.Name)
}

// SetupWithManager registers the reconciler. The manager's cache must have the index of lineage.IndexClustersByClass.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterstack").
		For(&csv1.ClusterStack{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}, statusLost()))).
		Watches(&csv1.ClusterStackRelease{}, handler.EnqueueRequestsFromMapFunc(r.requestsForRelease)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsForCluster),
			builder.WithPredicates(reconcile.ClassChangedPredicate())).
		WithOptions(o).
		Complete(r)
}

// statusLost passes stacks that have lost their status.
func statusLost() predicate.Predicate {
	return reconcile.StatusLostPredicate(func(o *csv1.ClusterStack) []metav1.Condition { return o.Status.Conditions })
}

// requestsForRelease maps a release to the stacks it belongs to, or would belong to if its owner reference had not been
// removed.
func (r *Reconciler) requestsForRelease(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	var l csv1.ClusterStackList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetNamespace())); err != nil {
		return nil // all stacks are reconciled again after their interval anyway
	}
	var out []ctrlreconcile.Request
	for _, s := range l.Items {
		if metav1.IsControlledBy(o, &s) || lineage.IsReleaseOfStack(&s, o.GetName()) {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(&s)})
		}
	}
	return out
}

// requestsForCluster maps a cluster to the stack of its class: a release may not be in use any more.
func (r *Reconciler) requestsForCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
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
	rel := &csv1.ClusterStackRelease{}
	rel.Namespace, rel.Name = key.Namespace, key.Name
	return r.requestsForRelease(ctx, rel)
}

// addProblem adds what only people can mend to ReleasesSynced. It is no reason to leave the rest undone.
func (s *scope) addProblem(reason, message string) {
	if len(s.problems) == 0 {
		s.problemReason = reason
	}
	s.problems = append(s.problems, message)
	s.conditions.SetFalse(csv1.ConditionReleasesSynced, s.problemReason, strings.Join(s.problems, "; "))
}
