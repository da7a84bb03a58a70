// Package kubeconfigrequest reconciles KubeconfigRequests: it gives who asks a client certificate of a workload cluster
// that is valid for some hours, and takes the request away when that time is over.
//
// A request is answered once. What decides about it is in the request and in the world: the cluster it
// names, the cluster's authority, and the Secret with an answer that was not told of yet. The keys of
// authorities are read when they are needed, and are in no status, error, event or log.
package kubeconfigrequest

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/workload"
)

// Names that workload clusters know those by who got access.
const (
	UserPrefix  = "polder:"       // before the name of who asked
	GroupAdmin  = "polder:admin"  // may do everything
	GroupViewer = "polder:viewer" // may read what is no secret
)

// When what is not there yet is looked at again.
const (
	resyncDelay    = 5 * time.Minute        // if a watch tells of it as well
	pollDelay      = 15 * time.Second       // if none does
	slotRetryDelay = 5 * time.Second        // if it is not its turn; twice as long at most
	cacheLagDelay  = 100 * time.Millisecond // the cache, at most
)

// Reconciler of KubeconfigRequests. All fields are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache
	Live     client.Client // reads from the API; Secrets are read and written with it alone
	Workload Workload
	Limiter  *fairness.Limiter // to talk to workload clusters
	Clock    clock.PassiveClock
	Events   events.EventRecorder
}

// Workload gives access to workload clusters.
type Workload interface {
	Get(ctx context.Context, cluster client.ObjectKey) (*workload.Cluster, error)
}

var _ Workload = (*workload.Clusters)(nil)

// scope is what one run works on.
type scope struct {
	request         *v1alpha1.KubeconfigRequest
	before          *v1alpha1.KubeconfigRequest // as it was read
	now             time.Time
	workloadCluster *v1alpha1.WorkloadCluster // that the request names
	cluster         *clusterv1.Cluster
	credentials     *credentialSpec // what is to be made
}

// Reconcile brings one request closer to its answer, or to its end.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &v1alpha1.KubeconfigRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil || !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{request: o, before: o.DeepCopy(), now: r.Clock.Now()}
	if !s.now.Before(deletionTime(o)) {
		return reconcile.RequeueOnConflict(ctrl.Result{}, r.deleteRequest(ctx, o))
	}
	o.Status.Conditions = reconcile.DropInvalidConditions(o.Status.Conditions)
	var phases []reconcile.Phase[*scope]
	if !isAnswered(o) {
		phases = []reconcile.Phase[*scope]{r.locateCluster, r.loadAuthority, r.grantRoles, r.issueCredentials}
	}
	result, err := reconcile.Run(ctx, s, phases...)
	s.summarize()
	if err == nil {
		result.RequeueAfter = requeueDelay(result.RequeueAfter, deletionTime(o).Sub(s.now))
	}
	return reconcile.RequeueOnConflict(result, reconcile.JoinWriteError(err, apierror.IgnoreNotFound(reconcile.Write(ctx, r.Client, s.before, o))))
}
