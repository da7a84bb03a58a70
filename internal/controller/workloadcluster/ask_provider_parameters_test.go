package workloadcluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/provider"
)

// parameterProvider makes a variable of machines from a parameter of its own. What it offers changes by itself.
type parameterProvider struct {
	simple
	sells *string
}

func (parameterProvider) Describe() provider.Description {
	return provider.Description{Name: "local", Parameters: map[string]map[string]any{"diskType": {}}}
}

func (p parameterProvider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	m := provider.Machines{Variables: provider.Values{"disk": string(in.Cluster.Spec.Parameters["diskType"].Raw), "flavor": *p.sells}}
	return provider.Topology{ControlPlane: m, Pools: map[string]provider.Machines{"default": m}}, nil
}

// A changed parameter of the provider reaches machines. Nothing else does that the customer did not ask for.
func TestParametersOfTheProviderReachMachines(t *testing.T) {
	set := func(name, value string) func(*v1alpha1.WorkloadCluster) {
		return func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Parameters = map[string]provider.JSON{"diskType": {Raw: []byte(`"hdd"`)}}
			o.Spec.Parameters[name] = provider.JSON{Raw: []byte(value)}
		}
	}
	for name, c := range map[string]struct {
		change       func(*v1alpha1.WorkloadCluster)
		older        bool // the digests of parts were written by an older Polder
		disk, flavor string
	}{
		"nothing changes":                      {set("diskType", `"hdd"`), false, `"hdd"`, "old"},
		"nothing changes but Polder":           {set("diskType", `"hdd"`), true, `"hdd"`, "old"},
		"another parameter of the stack":       {set("certSANs", `["x"]`), false, `"hdd"`, "old"},
		"another parameter of the provider":    {set("diskType", `"ssd"`), false, `"ssd"`, "new"},
		"another parameter of it, and Polder":  {set("diskType", `"ssd"`), true, `"ssd"`, "new"},
		"the parameter of the provider is out": {func(o *v1alpha1.WorkloadCluster) { o.Spec.Parameters = nil }, false, "", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sells := healthyScope(t), "old"
			class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: v1}}
			r := newReconciler(t, class)
			p := parameterProvider{sells: &sells}
			r.Provider, s.description = guarded(t, p), p.Describe()
			for _, change := range []func(*v1alpha1.WorkloadCluster){set("diskType", `"hdd"`), c.change} {
				change(s.object)
				if err := r.askProvider(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				written := s.answer
				if sells = "new"; c.older {
					written.PartDigests = map[string]string{"/": "1", "default": "2"}
				}
				b, err := json.Marshal(written)
				if err != nil {
					t.Fatal(err)
				}
				s.cluster.Annotations = map[string]string{v1alpha1.AnswerAnnotation: string(b)}
			}
			want := provider.Values{"disk": c.disk, "flavor": c.flavor}
			for part, m := range map[string]provider.Machines{"the control plane": s.answer.Topology.ControlPlane, "the pool": s.answer.Topology.Pools["default"]} {
				if d := cmp.Diff(want, m.Variables); d != "" {
					t.Errorf("%s: %s", part, d)
				}
			}
			if again, err := topology.DigestInput(s.object, s.target.Key().String(), s.description); err != nil || !cmp.Equal(again.PartDigests, s.answer.PartDigests) {
				t.Errorf("%v, %v", s.answer.PartDigests, err)
			}
		})
	}
}
