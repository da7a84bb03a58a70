package workloadcluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

func fieldsManagedBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: clusterv1.GroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// pausedBy pauses a Cluster as these field managers.
func pausedBy(managers ...string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.Paused = ptr.To(true)
		for _, m := range managers {
			c.ManagedFields = append(c.ManagedFields, fieldsManagedBy(m, `{"f:spec":{"f:paused":{}}}`))
		}
	}
}

// If somebody deletes the Cluster, that is reported whether or not it is paused, and our own pause does not outlive the
// spec's.
func TestSomebodyDeletesTheCluster(t *testing.T) {
	const us = string(fieldOwner)
	others := func(c *clusterv1.Cluster) {
		pausedBy("kubectl")(c)
		c.ManagedFields = append(c.ManagedFields, fieldsManagedBy(us, `{"f:metadata":{"f:labels":{"f:paused":{}}}}`))
	}
	for name, c := range map[string]struct {
		change func(*clusterv1.Cluster)
		spec   bool // spec.paused of the WorkloadCluster
		paused bool // spec.paused of the Cluster, afterwards
		actor  v1alpha1.Actor
	}{
		"it runs":                        {func(*clusterv1.Cluster) {}, false, false, v1alpha1.PlatformOperator},
		"it is paused":                   {pausedBy(us), true, true, v1alpha1.Customer},
		"it was paused":                  {pausedBy(us), false, false, v1alpha1.PlatformOperator},
		"another has paused it":          {others, false, true, v1alpha1.PlatformOperator},
		"it was paused, by another too":  {pausedBy(us, "kubectl"), false, true, v1alpha1.PlatformOperator},
		"it is to be paused, and is not": {func(*clusterv1.Cluster) {}, true, false, v1alpha1.Customer},
		"it is paused, and by another":   {pausedBy(us, "kubectl"), true, true, v1alpha1.Customer},
		"it was paused, nobody says who": {pausedBy(), false, true, v1alpha1.PlatformOperator},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.object.Spec.Paused = ptr.To(c.spec)
			s.cluster.Finalizers, s.cluster.DeletionTimestamp = []string{clusterv1.ClusterFinalizer}, &metav1.Time{Time: noon}
			c.change(s.cluster)
			r := newReconciler(t)
			all := clients(t, s.cluster).WithReturnManagedFields().Build()
			r.Client, r.Live = all, all
			if err := r.checkOwner(t.Context(), s); !reconcile.IsWait(err) {
				t.Fatal(err)
			}
			is := &clusterv1.Cluster{}
			if err := all.Get(t.Context(), client.ObjectKeyFromObject(s.cluster), is); err != nil {
				t.Fatal(err)
			}
			if got := ptr.Deref(is.Spec.Paused, false); got != c.paused {
				t.Errorf("paused: %t, want %t", got, c.paused)
			}
			r.summarize(s)
			st := s.object.Status
			if ready := s.condition(v1alpha1.ConditionReady); st.Phase != v1alpha1.PhaseStalled || st.Actor != c.actor || ready.Reason != v1alpha1.ReasonDeleting ||
				ready.Message != st.Message {
				t.Errorf("%s, %s, %s, %+v", st.Phase, st.Actor, st.Message, ready)
			}
		})
	}
}
