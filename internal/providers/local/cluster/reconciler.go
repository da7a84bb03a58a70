// Package cluster reconciles LocalClusters: it chooses their addresses and keeps their hosts
// running.
package cluster

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// Reconciler keeps a host for each LocalCluster.
type Reconciler struct {
	Client         client.Client
	Hosts          launch.Launcher
	Watcher        *watch.Watcher
	hostBackoff    hostBackoff
	allocationLock sync.Mutex // held while a block of addresses is chosen and recorded
}

// scope is what one reconciliation works on.
type scope struct {
	local *infrav1.LocalCluster
	owner *clusterv1.Cluster
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	gvk := infrav1.GroupVersion.WithKind("LocalCluster")
	return ctrl.NewControllerManagedBy(mgr).Named("localcluster").
		For(&infrav1.LocalCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(ctx, gvk, mgr.GetClient(), &infrav1.LocalCluster{}))).
		WatchesRawSource(source.TypedChannel(r.Watcher.Clusters, &handler.TypedEnqueueRequestForObject[*infrav1.LocalCluster]{})).
		WithOptions(o).
		Complete(r)
}

// Reconcile brings one LocalCluster a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	s := &scope{local: &infrav1.LocalCluster{}}
	if err := r.Client.Get(ctx, req.NamespacedName, s.local); err != nil {
		return res, client.IgnoreNotFound(err)
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, s.local, infrav1.ClusterFinalizer); err != nil || added {
		return res, err
	}
	// An owner that is gone is no error here: the LocalCluster must still be deleted.
	if s.owner, err = util.GetOwnerCluster(ctx, r.Client, s.local.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return res, err
	}
	if s.owner == nil && s.local.DeletionTimestamp.IsZero() {
		return res, nil // Cluster API will set the owner, and its write is an event of this object; or the owner is gone
	}
	if is, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, s.owner, s.local); err != nil || is || requeue {
		return res, err
	}
	// The status is written however the phases end: a failure is a condition too.
	before := s.local.DeepCopy()
	defer func() {
		summarize(s.local)
		res, err = reconcile.RequeueOnConflict(res, reconcile.JoinWriteError(err, apierror.IgnoreNotFound(reconcile.Write(ctx, r.Client, before, s.local))))
	}()
	if !s.local.DeletionTimestamp.IsZero() {
		return reconcile.Run(ctx, s, r.removeHost)
	}
	return reconcile.Run(ctx, s, checkPlatform, r.allocateAddresses, r.ensureHost, markProvisioned)
}

func summarize(c *infrav1.LocalCluster) {
	conditions.Set(c, reconcile.Summary(c.Status.Conditions, infrav1.ReadyCondition, c.Generation, infrav1.HostRunningCondition))
}

// setHostRunning sets the one condition that is not computed.
func (s *scope) setHostRunning(status metav1.ConditionStatus, reason, message string) {
	conditions.Set(s.local, metav1.Condition{Type: infrav1.HostRunningCondition, Status: status, Reason: reason, Message: message, ObservedGeneration: s.local.Generation})
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
	r.hostBackoff.forget(uid)
	controllerutil.RemoveFinalizer(s.local, infrav1.ClusterFinalizer)
	return nil
}

// removeTimeout is short, because the condition says what is in the way only when it is over; then it is tried again.
const removeTimeout = 5 * time.Second
