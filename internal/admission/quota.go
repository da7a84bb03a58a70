package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
)

// checkMachineQuota refuses a cluster that needs more machines than its namespace may still have. The API server counts
// machines when Cluster API makes them, so nobody gets more in any case; but a cluster that it refuses them to would
// stay unfinished, and one that fits only exactly could never be updated.
func (c *Checker) checkMachineQuota(ctx context.Context, q *clusterReview) error {
	needs := quota.MachinesNeeded(q.object)
	if q.old != nil && needs <= quota.MachinesNeeded(q.old) {
		return nil // it must be possible to shrink a cluster that does not fit any more
	}
	limit, err := quota.LimitOfMachines(ctx, c.Client, q.object.Namespace)
	if err != nil || limit == nil {
		return err
	}
	var l v1alpha1.WorkloadClusterList
	if err := c.Client.List(ctx, &l, client.InNamespace(q.object.Namespace)); err != nil {
		return fmt.Errorf("reading the clusters of namespace %s: %w", q.object.Namespace, err)
	}
	var others int64
	for i := range l.Items {
		if l.Items[i].Name != q.object.Name {
			others += quota.MachinesNeeded(&l.Items[i])
		}
	}
	if others+needs > limit.Most {
		q.addError(field.Forbidden(spec,
			fmt.Sprintf("all clusters of namespace %s together may have %d machines (ResourceQuota %s); while its machines are replaced, this one needs %d, and the others need %d: ask for fewer, or ask the platform operator for a larger quota",
				q.object.Namespace, limit.Most, limit.Quota, needs, others)))
	}
	return nil
}
