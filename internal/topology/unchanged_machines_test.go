package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func ofType(name string) v1alpha1.MachineSelection {
	return v1alpha1.MachineSelection{MachineType: name}
}

func TestDropUnchangedMachineErrors(t *testing.T) {
	at := field.NewPath("spec")
	wrong := field.ErrorList{
		field.Required(at.Child("controlPlane", "machineType"), ""), field.Required(at.Child("controlPlane", "machine", "disk"), ""),
		field.Required(at.Child("controlPlane"), ""),
		field.Required(at.Child("workers").Index(0).Child("machine"), ""), field.Required(at.Child("workers").Index(1).Child("machineType"), ""),
		field.Required(at.Child("workers").Index(0).Child("zones"), ""), field.Required(at.Child("workers").Index(0).Child("machineTypes"), ""),
		field.Required(at.Child("oidc"), ""),
	}
	spec := func(pool string) *v1alpha1.WorkloadCluster {
		o := &v1alpha1.WorkloadCluster{}
		o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", MachineSelection: ofType("x")}, {Name: "b", MachineSelection: ofType(pool)}}
		return o
	}
	var got []string
	for _, e := range DropUnchangedMachineErrors(spec("y"), spec("x"), nil, wrong) {
		got = append(got, e.Field)
	}
	if d := cmp.Diff([]string{"spec.controlPlane", "spec.workers[1].machineType", "spec.workers[0].zones", "spec.workers[0].machineTypes", "spec.oidc"},
		got); d != "" {
		t.Error(d)
	}
	other := spec("x")
	other.Spec.Stack.Version = "v2"
	if got := DropUnchangedMachineErrors(other, spec("x"), nil, wrong); len(got) != len(wrong) {
		t.Errorf("of another release: %v", got)
	}
}
