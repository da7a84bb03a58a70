package instant

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controlPlaneReconciler reports control planes as up. They have no machines, and as many replicas as their spec says.
type controlPlaneReconciler struct{ reconcilerBase }

// Reconcile fulfils the contract of a control plane.
func (r *controlPlaneReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, _, err := r.gather(ctx, controlPlaneKind, req.NamespacedName)
	if s == nil || !s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return ctrl.Result{}, err // the watch of Clusters brings it back once there is an endpoint, and then the API answers
	}
	before := s.object.DeepCopy()
	if err := s.setStatus(); err != nil {
		return ctrl.Result{}, err
	}
	patch := client.MergeFrom(before)
	if data, err := patch.Data(s.object); err != nil || string(data) == "{}" {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.client.Status().Patch(ctx, s.object, patch))
}

// setStatus sets the status of a control plane that is just as its spec says.
func (s *scope) setStatus() error {
	spec, _, _ := unstructured.NestedMap(s.object.Object, "spec") // of another form it is empty
	version, _ := spec["version"].(string)
	n, ok := spec["replicas"].(int64)
	if !ok {
		n = 1
	}
	status := map[string]any{
		"initialization":     map[string]any{"controlPlaneInitialized": true},
		"observedGeneration": s.object.GetGeneration(),
		"version":            version,
		"versions":           []any{map[string]any{"version": version, "replicas": n}},
		"selector":           "",
	}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		status[field] = n
	}
	was, _, _ := unstructured.NestedSlice(s.object.Object, "status", "conditions")
	status["conditions"] = s.conditions(was)
	return s.setField(status, "status")
}

// conditions are those that Cluster API looks at. Their last transition is when they were first written.
func (s *scope) conditions(was []any) []any {
	since := time.Now().UTC().Format(time.RFC3339)
	if len(was) > 0 {
		if c, ok := was[0].(map[string]any); ok {
			since, _ = c["lastTransitionTime"].(string)
		}
	}
	var out []any
	for _, c := range []struct {
		of, reason string
		is         metav1.ConditionStatus
	}{
		{"Available", "Available", metav1.ConditionTrue}, {"RollingOut", "NotRollingOut", metav1.ConditionFalse},
		{"ScalingUp", "NotScalingUp", metav1.ConditionFalse}, {"ScalingDown", "NotScalingDown", metav1.ConditionFalse},
	} {
		out = append(out, map[string]any{
			"type": c.of, "status": string(c.is), "reason": c.reason, "message": "", "lastTransitionTime": since, "observedGeneration": s.object.GetGeneration(),
		})
	}
	return out
}
