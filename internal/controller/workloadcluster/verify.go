package workloadcluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// verifyRetry is how soon to look again at a rollout that is not done.
const verifyRetry = time.Second

// readyConditions are the conditions that Ready sums up, in the order in which they are reported.
var readyConditions = []string{
	v1alpha1.ConditionResolved, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied,
	v1alpha1.ConditionControlPlane, v1alpha1.ConditionReachable, v1alpha1.ConditionWorkers, v1alpha1.ConditionAddons,
}

// phaseConditions are those that the phases set, one after another. The others are observed.
var phaseConditions = []string{v1alpha1.ConditionResolved, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied}

// looksReady reports whether all conditions are true.
func (s *scope) looksReady() bool { return s.firstFalse() == "" }

// verify makes sure that a cluster that looks ready is so: the Cluster counts what the control plane and the pools
// reported last, which may be from before they were changed. It reads past all caches, so it is right.
func (r *Reconciler) verify(ctx context.Context, s *scope) error {
	pending, err := r.checkControlPlaneRollout(ctx, s)
	if err != nil {
		return err
	}
	if pending != "" {
		s.conditions.SetFalse(v1alpha1.ConditionControlPlane, v1alpha1.ReasonMachinesOutOfDate, pending)
		s.requeueAfter = verifyRetry
	}
	var l clusterv1.MachineDeploymentList
	if err := r.Live.List(ctx, &l, client.InNamespace(s.object.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.object.Name}); err != nil {
		return err
	}
	for i := range l.Items {
		if why := checkPoolRollout(&l.Items[i]); why != "" {
			s.conditions.SetFalse(v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesOutOfDate, why)
			s.requeueAfter = verifyRetry
			break
		}
	}
	return nil
}

// checkPoolRollout says what is not done yet in a pool; "" if all is.
func checkPoolRollout(m *clusterv1.MachineDeployment) string {
	want, st := ptr.Deref(m.Spec.Replicas, 0), m.Status
	switch {
	case !m.DeletionTimestamp.IsZero():
		return fmt.Sprintf("pool %s is being removed", m.Labels[v1alpha1.PoolLabel])
	case st.ObservedGeneration != m.Generation:
		return fmt.Sprintf("pool %s has not seen its last change yet", m.Labels[v1alpha1.PoolLabel])
	case isRollingOut(st.Conditions, m.Generation):
		return fmt.Sprintf("machines of pool %s are being replaced", m.Labels[v1alpha1.PoolLabel])
	case ptr.Deref(st.Replicas, 0) != want || ptr.Deref(st.UpToDateReplicas, 0) != want ||
		ptr.Deref(st.AvailableReplicas, 0) != want:
		return fmt.Sprintf("%d of %d machines of pool %s are available and up to date",
			min(ptr.Deref(st.UpToDateReplicas, 0), ptr.Deref(st.AvailableReplicas, 0)), want, m.Labels[v1alpha1.PoolLabel])
	}
	return ""
}

// isRollingOut reports whether machines are being replaced, or whether that is not known for this generation yet.
func isRollingOut(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, clusterv1.RollingOutCondition)
	return c != nil && (c.Status != metav1.ConditionFalse || c.ObservedGeneration != generation)
}

// checkControlPlaneRollout says what is not done yet in the control plane; "" if all is.
func (r *Reconciler) checkControlPlaneRollout(ctx context.Context, s *scope) (string, error) {
	ref := s.cluster.Spec.ControlPlaneRef
	if ref.Name == "" {
		return "", nil
	}
	m, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return "", fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind)
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: ref.Name}, u); err != nil {
		return "", fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	var cp controlPlane
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &cp); err != nil {
		return "", fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	return cp.checkRollout(u.GetGeneration()), nil
}

// controlPlane has the fields of control planes in Cluster API's contract. Kinds that do not count machines leave the
// numbers out.
type controlPlane struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Replicas           *int32             `json:"replicas"`
		UpToDateReplicas   *int32             `json:"upToDateReplicas"`
		AvailableReplicas  *int32             `json:"availableReplicas"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// checkRollout says what is not done yet; "" if all is.
func (c controlPlane) checkRollout(generation int64) string {
	st := c.Status
	if st.ObservedGeneration != 0 && st.ObservedGeneration != generation {
		return "the control plane has not seen its last change yet"
	}
	if isRollingOut(st.Conditions, generation) {
		return "machines of the control plane are being replaced"
	}
	for _, n := range []*int32{st.Replicas, st.UpToDateReplicas, st.AvailableReplicas} {
		if c.Spec.Replicas != nil && n != nil && *n != *c.Spec.Replicas {
			return fmt.Sprintf("%d of %d machines of the control plane are available and up to date",
				min(ptr.Deref(st.UpToDateReplicas, 0), ptr.Deref(st.AvailableReplicas, 0)), *c.Spec.Replicas)
		}
	}
	return ""
}
