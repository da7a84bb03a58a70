// Package workloadcluster reconciles WorkloadClusters: it finds the release that one asks for, asks its provider what
// to set in the class, and applies one Cluster (of Cluster API), which does the rest. Then it reports in one sentence
// how that goes, and who must act.
//
// There is one reconciler for each provider, and it acts only on objects that name it.
package workloadcluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/internal/workload/probe"
	"github.com/polder-kaas/polder/provider"
)

// fieldOwner owns the fields of a Cluster that its WorkloadCluster decides.
const fieldOwner = client.FieldOwner("polder-workloadcluster")

// Reconciler reconciles the WorkloadClusters of one provider. All fields but Prober are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache
	Live     client.Reader // reads from the API server
	Provider *guard.Guard
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Prober   *probe.Prober // asks clusters whether they are ready; nil: what Cluster API says must do
}

// scope is what one run works on.
type scope struct {
	object  *v1alpha1.WorkloadCluster
	tracked *reconcile.Tracked[*v1alpha1.WorkloadCluster]
	cluster *clusterv1.Cluster // nil if there is none
	addon   *csv1.ClusterAddon // nil if there is none

	description     provider.Description
	catalogue       *lineage.Catalogue
	wanted          lineage.CatalogueEntry  // the release that the spec asks for
	target          lineage.CatalogueEntry  // the release that the Cluster is to have now
	running         *lineage.CatalogueEntry // the release of the Cluster's class; nil if it is not known
	held            bool                    // target is not what the spec asks for, or not yet
	contractRelease provider.Release        // the class of target, as providers see it
	answer          topology.Answer         // of the provider, new or kept

	conditions   reconcile.Conditions
	advice       map[string]advice // by condition: who must act on it
	requeueAfter time.Duration     // when to look again at what no watch reports
}

// newScope returns the scope of a cluster that was just read.
func newScope(o *v1alpha1.WorkloadCluster) *scope {
	return &scope{
		object: o, tracked: reconcile.Track(o), advice: map[string]advice{},
		conditions: reconcile.NewConditions(o, &o.Status.Conditions, v1alpha1.ReasonReady),
	}
}

// Reconcile brings one cluster closer to what is wanted, and reports how far it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &v1alpha1.WorkloadCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		r.forgetProbes(req.NamespacedName)
		if apierrors.IsNotFound(err) {
			err = r.releaseOrphan(ctx, req.NamespacedName)
		}
		return reconcile.Finish(ctrl.Result{}, err, nil)
	}
	if o.Spec.Provider != r.Provider.Name() {
		return ctrl.Result{}, nil // it belongs to another provider
	}
	if !o.DeletionTimestamp.IsZero() {
		r.forgetProbes(req.NamespacedName)
	}
	s := newScope(o)
	if err := r.gather(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	// Nothing is created before the finalizer is there, and no provider is asked about a Cluster that is not ours.
	phases := []reconcile.Phase[*scope]{r.ensureFinalizer, r.checkOwner, r.resolveRelease, r.askProvider, r.applyCluster}
	if !o.DeletionTimestamp.IsZero() {
		phases = []reconcile.Phase[*scope]{r.deleteCluster}
	}
	result, err := reconcile.Run(ctx, s, phases...)
	// After a conflict the run is made again at once, from newer objects.
	if !apierrors.IsConflict(err) && o.DeletionTimestamp.IsZero() {
		if observeErr := r.observe(ctx, s); observeErr != nil {
			s.conditions.SetFalse(v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotVerified,
				fmt.Sprintf("it could not be looked at closer: %v", observeErr))
			if err == nil {
				err = observeErr
			}
		}
	}
	r.summarize(s)
	result.RequeueAfter = minNonZero(result.RequeueAfter, s.requeueAfter)
	return reconcile.Finish(result, err, s.tracked.Write(ctx, r.Client))
}

// gather reads the Cluster and the ClusterAddon.
func (r *Reconciler) gather(ctx context.Context, s *scope) error {
	s.cluster, s.addon = &clusterv1.Cluster{}, &csv1.ClusterAddon{}
	key := client.ObjectKeyFromObject(s.object)
	err := r.Client.Get(ctx, key, s.cluster)
	if apierrors.IsNotFound(err) {
		s.cluster, err = nil, nil
	}
	if err != nil {
		return err
	}
	key.Name = csv1.AddonPrefix + key.Name
	err = r.Client.Get(ctx, key, s.addon)
	if apierrors.IsNotFound(err) {
		s.addon, err = nil, nil
	}
	return err
}

// ensureFinalizer keeps the object until its Cluster is gone. It is written before a Cluster is created.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) error {
	if !controllerutil.AddFinalizer(s.object, v1alpha1.WorkloadClusterFinalizer) {
		return nil
	}
	return s.tracked.Write(ctx, r.Client)
}

// checkOwner refuses to touch a Cluster that somebody else has created, and waits for one that is being deleted.
func (r *Reconciler) checkOwner(ctx context.Context, s *scope) error {
	if s.cluster == nil {
		return r.checkNotLost(ctx, s)
	}
	if s.ownsCluster() && s.cluster.DeletionTimestamp.IsZero() {
		r.recordCluster(s)
		r.markMovable(s)
		return nil
	}
	if s.ownsCluster() {
		return r.waitForDeletion(ctx, s)
	}
	if isOrphan(s.cluster) {
		s.conditions.SetFalse(v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting,
			"the Cluster of an earlier WorkloadCluster of this name is being deleted")
		if err := r.unpauseIfOwn(ctx, s.cluster); err != nil {
			return err
		}
		return reconcile.Wait(0, "the deletion of an earlier Cluster") // the watch of Clusters reports it
	}
	s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonNotOurs, advice{
		"there is a Cluster of this name already, which this WorkloadCluster did not make", v1alpha1.Customer,
		"give the WorkloadCluster another name, or delete the Cluster",
	})
	return reconcile.Wait(0, "a Cluster of another") // the watch of Clusters reports when it goes
}

// ownsCluster reports whether the Cluster is this object's. One without a controller that has our label and annotation
// has lost its owner reference and gets it back.
func (s *scope) ownsCluster() bool {
	if metav1.IsControlledBy(s.cluster, s.object) {
		return true
	}
	return metav1.GetControllerOf(s.cluster) == nil && s.cluster.Labels[v1alpha1.WorkloadClusterLabel] == s.object.Name &&
		s.cluster.Annotations[v1alpha1.AppliedAnnotation] != ""
}

// minNonZero returns the shorter of two delays, of which 0 is none.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// advice is a message, who must act on it, and how.
type advice struct {
	text  string
	actor v1alpha1.Actor
	next  string
}

// stall makes a condition false on which somebody must act.
func (s *scope) stall(condition, reason string, a advice) {
	s.conditions.SetFalse(condition, reason, a.text)
	s.advice[condition] = a
}
