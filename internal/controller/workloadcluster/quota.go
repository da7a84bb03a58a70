package workloadcluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
)

// quotaRetry is when a cluster that a quota holds up is looked at again: nothing of it changes when the quota does.
const quotaRetry = time.Minute

// checkQuota says so if machines are missing because the namespace may have no more of what they need: Cluster API goes
// on trying, and reports nothing that people would find. Admission keeps clusters below the quota, also while their
// machines are replaced, so a quota that is used up holds them up; it was lowered, or something else uses it.
func (r *Reconciler) checkQuota(ctx context.Context, s *scope) error {
	cp := ptr.Deref(s.cluster.Status.ControlPlane, clusterv1.ClusterControlPlaneStatus{})
	w := ptr.Deref(s.cluster.Status.Workers, clusterv1.WorkersStatus{})
	for _, part := range []struct {
		condition string
		machines  replicaCounts
		want      int32
	}{
		{v1alpha1.ConditionControlPlane,
			replicaCounts{cp.DesiredReplicas, cp.Replicas, cp.ReadyReplicas, cp.AvailableReplicas, cp.UpToDateReplicas},
			ptr.Deref(s.object.Spec.ControlPlane.Replicas, 1)},
		{v1alpha1.ConditionWorkers,
			replicaCounts{w.DesiredReplicas, w.Replicas, w.ReadyReplicas, w.AvailableReplicas, w.UpToDateReplicas},
			s.wantedWorkers()},
	} {
		uncounted := part.condition == v1alpha1.ConditionControlPlane && hasUncountedControlPlane(s.cluster)
		if uncounted || !meta.IsStatusConditionFalse(s.object.Status.Conditions, part.condition) {
			continue
		}
		why, err := quota.Exhausted(ctx, r.Client, s.object.Namespace, part.machines.waitForMachine(part.want))
		if err != nil {
			return err
		}
		if why != "" {
			s.stall(part.condition, v1alpha1.ReasonQuotaExceeded, advice{
				"machines cannot be made: " + why, v1alpha1.Customer,
				"shrink or delete clusters of the namespace, or ask the platform operator for a larger quota",
			})
			s.requeueAfter = minNonZero(s.requeueAfter, quotaRetry)
			return nil
		}
	}
	return nil
}

// waitForMachine reports whether the next step is to make a machine: one is missing, or an old one is to be replaced
// and its successor is not there yet.
func (m replicaCounts) waitForMachine(want int32) bool {
	there := ptr.Deref(m.existing, 0)
	return there < want || there == want && m.hasOutdated(want)
}
