package workloadcluster

import (
	"fmt"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// markMovable prepares a WorkloadCluster for clusterctl move, which pauses the Clusters of a namespace, waits until
// no object is marked as not to be moved, and makes all objects on another plane, owners before what they own, and
// without their status. There the WorkloadCluster would make a Cluster of its own before its old one has come. So it
// is held back here until it says itself that one is to come.
func (r *Reconciler) markMovable(s *scope) {
	a := s.object.Annotations
	if a == nil {
		a = map[string]string{}
		s.object.Annotations = a
	}
	why := r.Provider.LastDescription().Immovable
	if why == "" && s.isPausedByHand() { // clusterctl refuses those that are paused by their spec
		delete(a, clusterctlv1.BlockMoveAnnotation)
		a[v1alpha1.MovingAnnotation] = string(s.cluster.UID)
		return
	}
	a[clusterctlv1.BlockMoveAnnotation] = why
	delete(a, v1alpha1.MovingAnnotation)
}

// awaitMoved waits for a Cluster that is on the way here from another plane. Its UID is not said: whoever may write the
// annotation could have any text shown.
func (s *scope) awaitMoved() error {
	s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonClusterMoving, advice{
		"the WorkloadCluster has come from another plane, and its Cluster has not come yet", v1alpha1.PlatformOperator,
		fmt.Sprintf("wait for the end of clusterctl move, or run it again if it has failed; if there is no such Cluster any more, "+
			"make an empty one with: polder recreate %s -n %s", s.object.Name, s.object.Namespace),
	})
	return reconcile.Wait(0, "a Cluster that is moved here") // the watches report it, and the annotation
}
