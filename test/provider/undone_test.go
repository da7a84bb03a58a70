package provider

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// Somebody deletes the Cluster below a WorkloadCluster: the status says so, with who must act, and then it is made
// anew.
func TestClusterDeletedByHand(t *testing.T) {
	t.Parallel()
	const hold = "test.polder.dev/hold"
	g := newGround(t)
	o := g.cluster("undone", 1)
	g.await("undone", ready)
	c := &clusterv1.Cluster{}
	edit := func(f func(client.Object, string) bool) error {
		if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); err != nil {
			return err
		}
		before := c.DeepCopy()
		f(c, hold)
		return g.mgmt.Patch(t.Context(), c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	testenv.Eventually(t, soon, func() error { return edit(controllerutil.AddFinalizer) })
	first := c.UID
	if err := g.mgmt.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	stalled := g.await("undone", func(o *v1alpha1.WorkloadCluster) error {
		if o.Status.Phase != v1alpha1.PhaseStalled || !strings.HasPrefix(o.Status.Message, "somebody is deleting the Cluster of this WorkloadCluster") {
			return fmt.Errorf("%s: %s", o.Status.Phase, o.Status.Message)
		}
		return nil
	})
	if stalled.Status.Actor != v1alpha1.PlatformOperator || !strings.Contains(stalled.Status.NextStep, "delete the WorkloadCluster") {
		t.Errorf("%s must %s", stalled.Status.Actor, stalled.Status.NextStep)
	}
	testenv.Eventually(t, soon, func() error {
		err := edit(controllerutil.RemoveFinalizer)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	testenv.Eventually(t, soon, func() error {
		if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); err != nil {
			return err
		}
		if c.UID == first {
			return fmt.Errorf("it is still the Cluster that was deleted")
		}
		return nil
	})
	g.await("undone", ready)
	g.countAll(map[string]int32{"undone": 1})
	g.remove(o)
	g.awaitGone(o)
	g.awaitNothing()
}
