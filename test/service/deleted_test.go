package service

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

var deleted = flag.Int("deleted", 120, "how many clusters TestPausedClustersDeletedAtOnce makes and deletes")

// TestPausedClustersDeletedAtOnce deletes clusters that are paused in the first half second of their lives, when some
// have no finalizer yet. Nothing is left of any of them, though Cluster API deletes nothing that is paused.
func TestPausedClustersDeletedAtOnce(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	const tenant, together = "deleter", 8
	n := int32(*deleted)
	newTenant(t, p, tenant, v1alpha1.TenantSpec{Members: members(tenant), Quota: v1alpha1.TenantQuota{Clusters: &n, Machines: ptr.To(2 * n)}})
	var all sync.WaitGroup
	for w := range together {
		all.Go(func() {
			for i := range *deleted / together {
				o := newCluster(tenant, fmt.Sprintf("c-%d-%d", w, i), "", 0)
				if err := c.Create(t.Context(), o); apierrors.IsConflict(err) {
					continue // of those that count at the same time
				} else if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-time.After(time.Duration(rand.IntN(500)) * time.Millisecond):
				case <-t.Context().Done():
				}
				if err := c.Delete(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	testenv.Eventually(t, wait, func() error {
		var clusters clusterv1.ClusterList
		var workloads v1alpha1.WorkloadClusterList
		if err := errors.Join(c.List(t.Context(), &clusters, client.InNamespace(tenant)), c.List(t.Context(), &workloads, client.InNamespace(tenant))); err != nil {
			return err
		}
		for _, x := range clusters.Items {
			return fmt.Errorf("%d Clusters and %d WorkloadClusters are left, one is %s, paused %t, deleted at %s", len(clusters.Items), len(workloads.Items), x.Name,
				ptr.Deref(x.Spec.Paused, false), x.DeletionTimestamp)
		}
		if len(workloads.Items) > 0 {
			return fmt.Errorf("%d WorkloadClusters are left", len(workloads.Items))
		}
		return nil
	})
}
