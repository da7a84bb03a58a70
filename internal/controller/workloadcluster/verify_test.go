package workloadcluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

type change = func(*clusterv1.MachineDeployment)

func rollingOut(status metav1.ConditionStatus, generation int64) change {
	return func(m *clusterv1.MachineDeployment) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: status, ObservedGeneration: generation}}
	}
}

func TestCheckPoolRollout(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"all is done":                  {func(*clusterv1.MachineDeployment) {}, ""},
		"all is done, and it says so":  {rollingOut(metav1.ConditionFalse, 2), ""},
		"it goes":                      {func(m *clusterv1.MachineDeployment) { m.DeletionTimestamp = &metav1.Time{Time: noon} }, "pool default is being removed"},
		"it has not looked":            {func(m *clusterv1.MachineDeployment) { m.Generation = 3 }, "pool default has not seen its last change yet"},
		"it rolls":                     {rollingOut(metav1.ConditionTrue, 2), "machines of pool default are being replaced"},
		"nobody knows if it must roll": {rollingOut(metav1.ConditionFalse, 1), "machines of pool default are being replaced"},
		"nobody knows if it rolls":     {rollingOut(metav1.ConditionUnknown, 2), "machines of pool default are being replaced"},
		"one is too many": {func(m *clusterv1.MachineDeployment) { m.Status.Replicas = ptr.To[int32](2) },
			"1 of 1 machines of pool default are available and up to date"},
		"one is old": {func(m *clusterv1.MachineDeployment) { m.Status.UpToDateReplicas = ptr.To[int32](0) },
			"0 of 1 machines of pool default are available and up to date"},
		"one is away": {func(m *clusterv1.MachineDeployment) { m.Status.AvailableReplicas = nil },
			"0 of 1 machines of pool default are available and up to date"},
		"none are wanted": {func(m *clusterv1.MachineDeployment) {
			m.Spec.Replicas, m.Status = ptr.To[int32](0), clusterv1.MachineDeploymentStatus{ObservedGeneration: 2}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkPoolRollout(pool("a", 1, c.change)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// outdatedControlPlane makes a control plane that reports one machine too few.
func outdatedControlPlane(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"replicas": int64(1)},
		"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "upToDateReplicas": int64(0), "availableReplicas": int64(1)},
	}}
	u.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	u.SetKind("KubeadmControlPlane")
	u.SetNamespace("tenant")
	u.SetName(name)
	u.SetGeneration(1)
	return u
}

// What looks ready is read past all caches before Ready is true.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		live  []client.Object
		plane bool // the Cluster has a control plane object
		fails string
		ready bool
	}{
		"nothing is late": {live: []client.Object{pool("a", 1)}, ready: true},
		"a pool is late":  {live: []client.Object{pool("a", 1), pool("b", 0)}, fails: v1alpha1.ConditionWorkers},
		"a pool of another is late": {live: []client.Object{pool("b", 0, func(m *clusterv1.MachineDeployment) { m.Labels[clusterv1.ClusterNameLabel] = "other" })},
			ready: true},
		"the control plane is late": {live: []client.Object{outdatedControlPlane("cp")}, plane: true, fails: v1alpha1.ConditionControlPlane},
		"that of another is late":   {live: []client.Object{outdatedControlPlane("other")}, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			group := schema.GroupVersion{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2"}
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
			mapper.Add(group.WithKind("KubeadmControlPlane"), meta.RESTScopeNamespace)
			r := newReconciler(t) // its cache has nothing
			r.Client, r.Live = clients(t).WithRESTMapper(mapper).Build(), clients(t, c.live...).Build()
			if c.plane {
				s.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
					APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "cp",
				}
			}
			if err := r.observe(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			r.summarize(s)
			if got := s.object.Status.Phase == v1alpha1.PhaseReady; got != c.ready {
				t.Errorf("%+v", s.object.Status)
			}
			if !c.ready && (s.condition(c.fails).Reason != v1alpha1.ReasonMachinesOutOfDate || s.requeueAfter != time.Second ||
				s.object.Status.Phase != v1alpha1.PhaseUpdating) {
				t.Errorf("%s, %+v", s.requeueAfter, s.object.Status)
			}
		})
	}
	t.Run("a control plane that cannot be read is an error", func(t *testing.T) {
		s := healthyScope(t)
		s.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "cp",
		}
		if err := newReconciler(t).observe(t.Context(), s); err == nil {
			t.Error("no error")
		}
	})
}
