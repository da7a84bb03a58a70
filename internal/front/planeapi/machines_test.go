package planeapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/tenancy"
)

func newMachineOf(namespace, cluster, name string, change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(begin), Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
	m.Spec.Version = "v1.36.3"
	change(m)
	return m
}

// machineHandlers have two tenants with a cluster each, and one that names the namespace of another.
func machineHandlers(t *testing.T) map[string]http.Handler {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(s)
	for name, namespace := range map[string]string{"a": "ns-a", "b": "ns-b"} {
		tenant := newTenant(name, namespace)
		b.WithObjects(tenant, tenancy.NewNamespace(tenant))
		c := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-of-" + name}}
		b.WithObjects(c, newMachineOf(namespace, c.Name, "cp", func(m *clusterv1.Machine) {
			m.Labels[clusterv1.MachineControlPlaneLabel] = ""
			m.Status.Phase, m.Status.NodeRef.Name = "Running", "node-cp"
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue, Message: "not said"}}
		}), newMachineOf(namespace, c.Name, "worker", func(m *clusterv1.Machine) {
			m.Labels[v1alpha1.PoolLabel] = "default"
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "no room"}}
		}), newMachineOf(namespace, "another", "stray", func(*clusterv1.Machine) {}))
	}
	b.WithObjects(newTenant("thief", "ns-a"))
	c := b.Build()
	return Handlers(Config{Tenants: c, Machines: c, Status: func() (any, error) { return nil, nil }})
}

func TestMachines(t *testing.T) {
	h := machineHandlers(t)
	read := func(path string) (p MachinePage) {
		t.Helper()
		code, body := ask(t, h, http.MethodGet, planepath.Machines+path, "x")
		if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		return p
	}
	cp := Machine{Name: "cp", ControlPlane: true, Phase: "Running", Ready: true, Kubernetes: "v1.36.3", Node: "node-cp", Created: begin}
	worker := Machine{Name: "worker", Pool: "default", Phase: "Pending", Message: "no room", Kubernetes: "v1.36.3", Created: begin}
	for path, want := range map[string]MachinePage{
		"a/one-of-a":                     {Items: []Machine{cp, worker}},
		"a/one-of-a?limit=1":             {Items: []Machine{cp}, Continue: "cp"},
		"a/one-of-a?limit=1&continue=cp": {Items: []Machine{worker}},
		"b/one-of-b?continue=worker":     {Items: []Machine{}},
	} {
		if d := cmp.Diff(want, read(path)); d != "" {
			t.Errorf("%s:\n%s", path, d)
		}
	}
	for path, want := range map[string]int{
		"a/one-of-b": 404, "a/another": 404, "a": 404, "a/": 404, "": 404, "c/one-of-a": 404, "thief/one-of-a": 404, "a/one-of-a/": 404, "b/../a/one-of-a": 404,
		"a/one-of-a?limit=x": 400,
	} {
		if code, body := ask(t, h, http.MethodGet, planepath.Machines+path, "x"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := ask(t, h, http.MethodDelete, planepath.Machines+"a/one-of-a", "x"); code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", code)
	}
}
