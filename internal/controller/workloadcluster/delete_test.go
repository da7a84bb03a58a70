package workloadcluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
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

// A WorkloadCluster that Kubernetes has removed at once, before it had a finalizer, leaves a Cluster that the garbage
// collector deletes: our own pause does not keep it for ever, nor one of the same name that comes after it.
func TestOrphanIsReleased(t *testing.T) {
	const us = string(fieldOwner)
	for name, tt := range map[string]struct {
		change func(c *clusterv1.Cluster)
		paused bool
	}{
		"it is an orphan":         {pausedBy(us), false},
		"another has paused it":   {pausedBy(us, "kubectl"), true},
		"nobody deletes it yet":   {func(c *clusterv1.Cluster) { pausedBy(us)(c); c.DeletionTimestamp = nil }, true},
		"it is none of ours":      {func(c *clusterv1.Cluster) { pausedBy(us)(c); c.OwnerReferences = nil }, true},
		"of another provider":     {func(c *clusterv1.Cluster) { pausedBy(us)(c); c.Labels[v1alpha1.ProviderLabel] = "other" }, true},
		"it is of another object": {func(c *clusterv1.Cluster) { pausedBy(us)(c); c.OwnerReferences[0].Kind = "Other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.cluster.Finalizers, s.cluster.DeletionTimestamp = []string{clusterv1.ClusterFinalizer}, &metav1.Time{Time: noon}
			s.cluster.Labels = map[string]string{v1alpha1.ProviderLabel: simple{}.Describe().Name}
			s.cluster.OwnerReferences[0].UID = "of-one-that-is-gone"
			tt.change(s.cluster)
			r := newReconciler(t)
			isPaused := func(all client.Client) bool {
				is := &clusterv1.Cluster{}
				if err := all.Get(t.Context(), client.ObjectKeyFromObject(s.cluster), is); err != nil {
					t.Fatal(err)
				}
				return ptr.Deref(is.Spec.Paused, false)
			}
			all := clients(t, s.cluster).WithReturnManagedFields().Build()
			r.Client, r.Live = all, all
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.cluster)}); err != nil || isPaused(all) != tt.paused {
				t.Errorf("paused: %t, want %t, %v", isPaused(all), tt.paused, err)
			}
			// The cache of WorkloadClusters is behind.
			r.Client, r.Live = all, clients(t, s.object.DeepCopy()).Build()
			r.Client = clients(t, s.cluster).WithReturnManagedFields().Build()
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.cluster)}); err != nil || !isPaused(r.Client) {
				t.Errorf("that of one that is there is released: %v", err)
			}
		})
	}
}

// One of the same name waits for the Cluster of the one before it to be gone, and nobody must act.
func TestNameOfOrphan(t *testing.T) {
	s := healthyScope(t)
	s.cluster.Finalizers, s.cluster.DeletionTimestamp = []string{clusterv1.ClusterFinalizer}, &metav1.Time{Time: noon}
	s.cluster.OwnerReferences[0].UID = "of-one-that-is-gone"
	pausedBy(string(fieldOwner))(s.cluster)
	r := newReconciler(t)
	all := clients(t, s.cluster).WithReturnManagedFields().Build()
	r.Client, r.Live = all, all
	if err := r.checkOwner(t.Context(), s); !reconcile.IsWait(err) {
		t.Fatal(err)
	}
	is := &clusterv1.Cluster{}
	if err := all.Get(t.Context(), client.ObjectKeyFromObject(s.cluster), is); err != nil || ptr.Deref(is.Spec.Paused, false) {
		t.Errorf("it stays paused: %v", err)
	}
	r.summarize(s)
	if c := s.condition(v1alpha1.ConditionApplied); c.Reason != v1alpha1.ReasonDeleting || s.object.Status.Actor != v1alpha1.Nobody {
		t.Errorf("%+v, %s", c, s.object.Status.Actor)
	}
}
