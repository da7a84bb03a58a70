package workloadcluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
)

// A quota that is used up is named if machines are missing, and only then.
func TestQuotaHoldsUpMachines(t *testing.T) {
	for name, c := range map[string]struct {
		used    int64 // of two machines
		change  func(*scope)
		stalled string // the condition
	}{
		"nothing is missing":            {2, func(*scope) {}, ""},
		"a control plane is missing":    {2, func(s *scope) { s.cluster.Status.ControlPlane.Replicas = ptr.To[int32](0) }, v1alpha1.ConditionControlPlane},
		"a worker is missing":           {2, func(s *scope) { s.cluster.Status.Workers.Replicas = ptr.To[int32](0) }, v1alpha1.ConditionWorkers},
		"a worker is missing, and fits": {1, func(s *scope) { s.cluster.Status.Workers.Replicas = ptr.To[int32](0) }, ""},
		"a worker is not ready":         {2, func(s *scope) { s.cluster.Status.Workers.ReadyReplicas = ptr.To[int32](0) }, ""},
		"an old worker waits for its successor": {2, func(s *scope) { s.cluster.Status.Workers.UpToDateReplicas = ptr.To[int32](0) },
			v1alpha1.ConditionWorkers},
		"an old worker beside its successor": {2, func(s *scope) {
			s.cluster.Status.Workers.UpToDateReplicas, s.cluster.Status.Workers.Replicas = ptr.To[int32](0), ptr.To[int32](2)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := quota.Default("tenant")
			q.Status.Hard = corev1.ResourceList{quota.Machines: *resource.NewQuantity(2, resource.DecimalSI)}
			q.Status.Used = corev1.ResourceList{quota.Machines: *resource.NewQuantity(c.used, resource.DecimalSI)}
			s := healthyScope(t)
			c.change(s)
			r := newReconciler(t, q)
			if err := r.observe(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			r.summarize(s)
			st := s.object.Status
			if c.stalled == "" {
				if strings.Contains(st.Message, "quota") {
					t.Errorf("%+v", st)
				}
				return
			}
			got := s.condition(c.stalled)
			if got.Reason != v1alpha1.ReasonQuotaExceeded || got.Status != metav1.ConditionFalse || st.Actor != v1alpha1.Customer ||
				st.Message != "machines cannot be made: ResourceQuota polder-default of namespace tenant allows 2 machines, and there are 2" ||
				s.requeueAfter == 0 || s.requeueAfter > quotaRetry {
				t.Errorf("%+v, %+v", got, st)
			}
		})
	}
}
