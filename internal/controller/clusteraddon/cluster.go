package clusteraddon

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/workload"
)

// unreachableDelay is how soon to look again whether a cluster answers that does not; that costs no request to it.
const unreachableDelay = 10 * time.Second

// connectCluster waits for the control plane and connects to it. It follows the Cluster's status and not the runtime
// hook AfterControlPlaneInitialized, which Cluster API calls only once.
func (r *Reconciler) connectCluster(ctx context.Context, s *scope) error {
	if !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonNotInitialized,
			"the control plane is not initialized yet")
		return reconcile.Wait(0, "the control plane") // the watch of Clusters reports it
	}
	w, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonUnreachable, err.Error())
	}
	if errors.As(err, new(*workload.UnreachableError)) {
		return reconcile.Wait(wait.Jitter(unreachableDelay, 0.2), "%v", err)
	}
	if err != nil {
		return err
	}
	s.workload = w
	// From here on the run talks to the workload cluster, which may be slow: one namespace must not take all workers.
	done, err := r.Limiter.Acquire(ctx, s.cluster.Namespace)
	if errors.Is(err, fairness.ErrBusy) {
		// Nothing new is known of the cluster, so its conditions stay.
		return reconcile.Wait(wait.Jitter(retryDelay, 1), "%v", err)
	}
	if err != nil {
		return err
	}
	s.freeSlot = done
	return nil
}
