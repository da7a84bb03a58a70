// Package cluster reconciles LocalClusters: it chooses their addresses and keeps their hosts
// running.
package cluster

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// Reconciler keeps a host for each LocalCluster.
type Reconciler struct {
	Client          client.Client
	APIReader       client.Reader // for namespaces, which are not worth a cache
	Hosts           launch.Launcher
	Watcher         *watch.Watcher
	Clock           clock.PassiveClock
	Confinement     func() hostapi.Confinement // what the kernel offers; nil: enough
	AllowUnconfined bool                       // customers may have clusters where that is too little

	hostBackoff    hostBackoff
	allocationLock sync.Mutex // held while a block of addresses is chosen and recorded
}

// scope is what one reconciliation works on.
type scope struct {
	local      *infrav1.LocalCluster
	owner      *clusterv1.Cluster
	conditions reconcile.Conditions
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	gvk := infrav1.GroupVersion.WithKind("LocalCluster")
	return ctrl.NewControllerManagedBy(mgr).Named("localcluster").
		For(&infrav1.LocalCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(ctx, gvk,
			mgr.GetClient(), &infrav1.LocalCluster{}))).
		WatchesRawSource(source.TypedChannel(r.Watcher.Clusters,
			&handler.TypedEnqueueRequestForObject[*infrav1.LocalCluster]{})).
		WithOptions(o).
		Complete(r)
}

// Reconcile brings one LocalCluster a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	local := &infrav1.LocalCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, local); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, local, infrav1.ClusterFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	// An owner that is gone is no error here: the LocalCluster must still be deleted.
	owner, err := util.GetOwnerCluster(ctx, r.Client, local.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	deleted := !local.DeletionTimestamp.IsZero()
	if owner == nil && !deleted {
		return ctrl.Result{}, nil // Cluster API will set the owner, which is an event of this object; or the owner is gone
	}
	if is, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, owner, local); err != nil || is || requeue {
		return ctrl.Result{}, err
	}
	tracked, s := reconcile.Track(local), newScope(local, owner)
	phases := []reconcile.Phase[*scope]{
		checkPlatform, r.checkConfinement, r.allocateAddresses, r.ensureHost, markProvisioned,
	}
	if deleted {
		phases = []reconcile.Phase[*scope]{r.removeHost}
	}
	// The status is written however the phases end: a failure is a condition too.
	result, err := reconcile.Run(ctx, s, phases...)
	s.summarize()
	return reconcile.Finish(result, err, tracked.Write(ctx, r.Client))
}

// newScope returns the scope of a LocalCluster that was just read.
func newScope(local *infrav1.LocalCluster, owner *clusterv1.Cluster) *scope {
	conditions := reconcile.NewConditions(local, &local.Status.Conditions, infrav1.HostRunningReason)
	return &scope{local: local, owner: owner, conditions: conditions}
}

// summarize sets Ready.
func (s *scope) summarize() {
	s.conditions.Set(s.conditions.Summarize(infrav1.ReadyCondition, infrav1.HostRunningCondition))
}

// setHostRunning sets the one condition that is not computed.
func (s *scope) setHostRunning(status metav1.ConditionStatus, reason, message string) {
	s.conditions.Set(metav1.Condition{
		Type: infrav1.HostRunningCondition, Status: status, Reason: reason, Message: message,
	})
}

// removeHost ends the host with all that is left in it. Cluster API deletes machines before their
// cluster, so that is little.
func (r *Reconciler) removeHost(ctx context.Context, s *scope) error {
	s.setHostRunning(metav1.ConditionFalse, infrav1.HostDeletingReason, "")
	uid := string(s.local.UID)
	// First, so that the end of the host is not taken for a change to act on.
	r.Watcher.UnwatchHost(uid)
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if err := r.Hosts.Remove(ctx, uid); err != nil {
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostDeletingReason, err.Error())
		return err
	}
	r.hostBackoff.Forget(uid)
	controllerutil.RemoveFinalizer(s.local, infrav1.ClusterFinalizer)
	return nil
}

// removeTimeout is short, because the condition says what is in the way only when it is over; then it is tried again.
const removeTimeout = 5 * time.Second
