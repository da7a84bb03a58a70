// Package kubeconfigrequest reconciles KubeconfigRequests: it issues a client certificate of a workload cluster, valid
// for some hours, to the user who asks, and deletes the request when that time is over.
//
// A request is answered once. All decisions are made from the request and from what is observed: the cluster it names,
// the cluster's authority, and a Secret with credentials that are not in the status yet. The keys of authorities are
// read when they are needed, and are in no status, error, event or log.
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
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/workload"
)

// Names of users and groups that got access, as workload clusters know them.
const (
	UserPrefix  = "polder:"       // before the name of the user who asked
	GroupAdmin  = "polder:admin"  // may do everything
	GroupViewer = "polder:viewer" // may read all but Secrets
)

// When to look again at what is not there yet.
const (
	resyncDelay    = 5 * time.Minute        // if a watch reports it as well
	pollDelay      = 15 * time.Second       // if no watch does
	slotRetryDelay = 5 * time.Second        // if there is no slot; twice as long at most
	cacheLagDelay  = 100 * time.Millisecond // for the cache to catch up
)

// Reconciler reconciles KubeconfigRequests. All fields are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache
	Live     client.Client // reads from the API server; Secrets are read and written with it alone
	Workload Workload
	Limiter  *fairness.Limiter // for access to workload clusters
	Clock    clock.PassiveClock
	Events   events.EventRecorder
}

// Workload connects to workload clusters.
type Workload interface {
	Get(ctx context.Context, cluster client.ObjectKey) (*workload.Cluster, error)
}

var _ Workload = (*workload.Clusters)(nil)

// scope is what one run works on.
type scope struct {
	request         *v1alpha1.KubeconfigRequest
	conditions      reconcile.Conditions
	now             time.Time
	workloadCluster *v1alpha1.WorkloadCluster // the one that the request names
	cluster         *clusterv1.Cluster
	credentials     *credentialSpec // what is to be issued
}

// newScope returns the scope of a request that was just read.
func newScope(o *v1alpha1.KubeconfigRequest, now time.Time) *scope {
	conditions := reconcile.NewConditions(o, &o.Status.Conditions, v1alpha1.ReasonIssued)
	return &scope{request: o, conditions: conditions, now: now}
}

// Reconcile brings one request closer to its credentials, or to its deletion.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &v1alpha1.KubeconfigRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil || !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	tracked, s := reconcile.Track(o), newScope(o, r.Clock.Now())
	over, err := r.isOver(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if over {
		return reconcile.Finish(ctrl.Result{}, r.deleteRequest(ctx, o), nil)
	}
	var phases []reconcile.Phase[*scope]
	if !isAnswered(o) {
		// Roles before credentials, so that whoever gets a certificate can use it at once.
		phases = []reconcile.Phase[*scope]{r.locateCluster, r.loadAuthority, r.grantRoles, r.issueCredentials}
	}
	result, err := reconcile.Run(ctx, s, phases...)
	s.summarize()
	if err == nil {
		result.RequeueAfter = requeueDelay(result.RequeueAfter, deletionTime(o).Sub(s.now))
	}
	return reconcile.Finish(result, err, tracked.Write(ctx, r.Client))
}
