package workloadcluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// A run that ends early knows nothing of what comes after it, and may know nothing of what comes before: the first runs
// of a cluster, or after its spec was edited. What it does know is reported, and who must act.
func TestARunThatEndsEarlyIsReported(t *testing.T) {
	nothing := func(s *scope) { s.object.Status = v1alpha1.WorkloadClusterStatus{} }
	edited := func(s *scope) { s.object.Generation++ }
	foreign := func(s *scope) { s.cluster.OwnerReferences = nil }
	deleted := func(s *scope) {
		s.cluster.Finalizers, s.cluster.DeletionTimestamp = []string{clusterv1.ClusterFinalizer}, &metav1.Time{Time: noon}
	}
	unresolved := func(s *scope) { failSince(s, v1alpha1.ConditionResolved, v1alpha1.ReasonStackMissing, time.Hour) }
	for name, c := range map[string]struct {
		changes []func(*scope)
		actor   v1alpha1.Actor
		reason  string
	}{
		"a new one, and a Cluster of somebody else":         {[]func(*scope){nothing, foreign}, v1alpha1.Customer, v1alpha1.ReasonNotOurs},
		"an edited one, and somebody deletes its Cluster":   {[]func(*scope){edited, deleted}, v1alpha1.PlatformOperator, v1alpha1.ReasonDeleting},
		"one without a stack, and somebody deletes Cluster": {[]func(*scope){unresolved, deleted}, v1alpha1.PlatformOperator, v1alpha1.ReasonDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.object.Spec.Provider = "local"
			for _, change := range c.changes {
				change(s)
			}
			r := newReconciler(t, s.object, s.cluster)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.object)}); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.object), s.object); err != nil {
				t.Fatal(err)
			}
			st, ready := s.object.Status, s.condition(v1alpha1.ConditionReady)
			if st.Phase != v1alpha1.PhaseStalled || st.Actor != c.actor || st.NextStep == "" || ready.Reason != c.reason || ready.Status != metav1.ConditionFalse ||
				ready.Message != st.Message {
				t.Errorf("%s, %s, %q, %q, %+v", st.Phase, st.Actor, st.Message, st.NextStep, ready)
			}
		})
	}
}
