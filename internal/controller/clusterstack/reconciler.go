// Package clusterstack reconciles ClusterStacks: it looks at their sources and keeps the releases that
// are wanted or used.
package clusterstack

import (
	"context"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/controller/usage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases"
)

// Reconciler of ClusterStacks. All fields are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache, with usage.Index
	Releases *releases.Library
	Events   events.EventRecorder
	Interval time.Duration // between looks at a source, if a stack does not say

	mu    sync.Mutex
	looks map[types.NamespacedName]look
}

// scope is what one run works on.
type scope struct {
	object *csv1.ClusterStack
	before *csv1.ClusterStack
	look   look                       // the last one at the source
	have   []csv1.ClusterStackRelease // of this stack
	used   map[string]bool            // releases with clusters
	wrongs []string                   // what people must mend before all releases can be there
	reason string                     // of the first of them
}

// Reconcile brings the releases of one stack closer to what is wanted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &csv1.ClusterStack{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its releases go by themselves, as soon as nobody uses them
	}
	s := &scope{object: o, before: o.DeepCopy()}
	o.Status.Conditions = reconcile.Sound(o.Status.Conditions)
	_, err := reconcile.Run(ctx, s, r.looked, r.gathered, r.chosen, r.reported)
	r.summarize(s)
	if err := reconcile.Finish(err, apierror.IgnoreNotFound(reconcile.Write(ctx, r.Client, s.before, o))); err != nil {
		return reconcile.Quiet(ctrl.Result{}, err)
	}
	return ctrl.Result{RequeueAfter: max(time.Until(s.look.next), time.Second)}, nil
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looks, key)
}

// gathered finds the releases of the stack, and which of them have clusters.
func (r *Reconciler) gathered(ctx context.Context, s *scope) error {
	var l csv1.ClusterStackReleaseList
	if err := r.Client.List(ctx, &l, client.InNamespace(s.object.Namespace)); err != nil {
		return err
	}
	s.used = map[string]bool{}
	for _, rel := range l.Items {
		if !belongs(s.object, &rel) {
			continue
		}
		users, err := usage.Clusters(ctx, r.Client, client.ObjectKeyFromObject(&rel))
		if err != nil {
			return err
		}
		s.used[rel.Name] = len(users) > 0
		s.have = append(s.have, rel)
	}
	return nil
}

// belongs says that a release is of the stack: by its owner or, if that was taken away, by its name. Whatever
// its owner is, what is not called as releases of the stack are is none of them.
func belongs(s *csv1.ClusterStack, r *csv1.ClusterStackRelease) bool {
	if owner := metav1.GetControllerOf(r); owner != nil {
		_, ok := usage.InLine(s, r.Name)
		return ok && owner.UID == s.UID
	}
	return usage.IsOf(s, r.Name)
}

// SetupWithManager registers the reconciler. The manager's cache must have usage.Index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterstack").
		For(&csv1.ClusterStack{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, lost()))).
		Watches(&csv1.ClusterStackRelease{}, handler.EnqueueRequestsFromMapFunc(r.ofRelease)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(usage.ClassChanged())).
		WithOptions(o).
		Complete(r)
}

func lost() predicate.Predicate {
	return reconcile.Lost(func(o *csv1.ClusterStack) []metav1.Condition { return o.Status.Conditions })
}

// ofRelease are the stacks a release belongs to, or would if its owner had not been taken away.
func (r *Reconciler) ofRelease(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	var l csv1.ClusterStackList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetNamespace())); err != nil {
		return nil // it comes back by itself
	}
	var out []ctrlreconcile.Request
	for _, s := range l.Items {
		if metav1.IsControlledBy(o, &s) || usage.IsOf(&s, o.GetName()) {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(&s)})
		}
	}
	return out
}

// ofCluster is the stack of the cluster's class, of which a release may not be needed any more.
func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	c, ok := o.(*clusterv1.Cluster)
	if !ok {
		return nil
	}
	class, ok := usage.Class(c)
	if !ok {
		return nil
	}
	key, ok := usage.ReleaseOf(class)
	if !ok {
		return nil
	}
	rel := &csv1.ClusterStackRelease{}
	rel.Namespace, rel.Name = key.Namespace, key.Name
	return r.ofRelease(ctx, rel)
}

func (s *scope) set(condition, reason, message string) {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: reconcile.Short(message), ObservedGeneration: s.object.Generation}
	if reason == "" {
		c.Status, c.Reason = metav1.ConditionTrue, csv1.ReasonAvailable
	}
	meta.SetStatusCondition(&s.object.Status.Conditions, c)
}

// wrong notes what only people can mend, after what was noted before. It is no reason to leave the rest undone.
func (s *scope) wrong(reason, message string) {
	if len(s.wrongs) == 0 {
		s.reason = reason
	}
	s.wrongs = append(s.wrongs, message)
	s.set(csv1.ConditionReleasesSynced, s.reason, strings.Join(s.wrongs, "; "))
}
