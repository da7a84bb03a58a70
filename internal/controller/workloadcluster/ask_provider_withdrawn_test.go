package workloadcluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
)

// oneTypeProvider offers machines of one type.
type oneTypeProvider struct{}

func (oneTypeProvider) Describe() provider.Description {
	return provider.Description{Name: "local", MachineTypes: []v1alpha1.MachineType{{Name: "small", CPU: 1, MemoryMiB: 2048}}}
}

func (p oneTypeProvider) Validate(_ context.Context, in provider.Input) field.ErrorList {
	return scsvars.Validate(p.Describe(), in)
}

func (p oneTypeProvider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	return scsvars.Topology(p.Describe(), in)
}

func ofType(name string) v1alpha1.MachineSelection {
	return v1alpha1.MachineSelection{MachineType: name}
}

// A machine type that is withdrawn stops no cluster that has it: the rest of its spec can be changed.
func TestWithdrawnTypesStay(t *testing.T) {
	flavor := func(name string) provider.Machines {
		return provider.Machines{Variables: provider.Values{"flavor": name}}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.WorkloadClusterSpec)
		want   provider.Topology
		err    bool
	}{
		"a pool more": {
			func(o *v1alpha1.WorkloadClusterSpec) {
				o.Workers = append(o.Workers, v1alpha1.WorkerPool{Name: "new", MachineSelection: ofType("small")})
			},
			provider.Topology{Variables: provider.Values{}, ControlPlane: flavor("gone"),
				Pools: map[string]provider.Machines{"default": flavor("gone"), "new": flavor("small")}}, false,
		},
		"another size of the control plane": {
			func(o *v1alpha1.WorkloadClusterSpec) { o.ControlPlane.MachineSelection = ofType("small") },
			provider.Topology{Variables: provider.Values{}, ControlPlane: flavor("small"), Pools: map[string]provider.Machines{"default": flavor("gone")}}, false,
		},
		"a pool more of that type": {
			func(o *v1alpha1.WorkloadClusterSpec) {
				o.Workers = append(o.Workers, v1alpha1.WorkerPool{Name: "new", MachineSelection: ofType("gone")})
			}, provider.Topology{}, true,
		},
		"another type that is gone": {func(o *v1alpha1.WorkloadClusterSpec) { o.ControlPlane.MachineSelection = ofType("lost") }, provider.Topology{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: v1}}
			class.Spec.Variables = []clusterv1.ClusterClassVariable{
				{Name: "flavor", Required: ptr.To(true), Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string"}}},
			}
			r, s := newReconciler(t, class), healthyScope(t)
			r.Provider = guarded(t, oneTypeProvider{})
			spec := &s.object.Spec
			spec.ControlPlane.MachineSelection, spec.Workers[0].MachineSelection = ofType("gone"), ofType("gone")
			was, err := topology.DigestInput(s.object, s.target.Key().String(), s.description)
			if err != nil {
				t.Fatal(err)
			}
			was.Topology = provider.Topology{ControlPlane: flavor("gone"), Pools: map[string]provider.Machines{"default": flavor("gone")}}
			b, err := json.Marshal(was)
			if err != nil {
				t.Fatal(err)
			}
			s.cluster.Annotations = map[string]string{v1alpha1.AnswerAnnotation: string(b)}
			c.change(spec)
			err = r.askProvider(t.Context(), s)
			if c.err {
				if a := s.advice[v1alpha1.ConditionAccepted]; !reconcile.IsWait(err) || a.actor != v1alpha1.Customer {
					t.Errorf("error %v, %+v", err, a)
				}
				return
			}
			if d := cmp.Diff(c.want, s.answer.Topology); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}
