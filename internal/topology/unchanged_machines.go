package topology

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// HasSameInput says that a change is none that a provider is asked about: of how many machines there are, of labels and
// taints, of pause and protection. It must go through whatever became of the provider.
func HasSameInput(o, old *v1alpha1.WorkloadCluster) bool {
	a, err := DigestInput(o, "", provider.Description{})
	b, err2 := DigestInput(old, "", provider.Description{})
	return err == nil && err2 == nil && a.InputDigest == b.InputDigest && o.Spec.Provider == old.Spec.Provider && o.Spec.Stack == old.Spec.Stack
}

// DropUnchangedMachineErrors is what a provider says against a change, without what it says against machines that were asked for in the
// same way before: they are there, and stay. own are the parameters of the provider.
func DropUnchangedMachineErrors(o, old *v1alpha1.WorkloadCluster, own map[string]map[string]any, errs field.ErrorList) field.ErrorList {
	d := provider.Description{Parameters: own}
	a, err := DigestInput(o, "", d)
	b, err2 := DigestInput(old, "", d)
	if err != nil || err2 != nil || o.Spec.Provider != old.Spec.Provider || o.Spec.Stack != old.Spec.Stack {
		return errs
	}
	rest, _ := SplitMachineErrors(o, errs, func(part string) bool { return a.PartDigests[part] == b.PartDigests[part] })
	return rest
}

// SplitMachineErrors divides what is said against a spec into what must be said, and parts that are settled.
func SplitMachineErrors(o *v1alpha1.WorkloadCluster, errs field.ErrorList, isUnchanged func(part string) bool) (rest field.ErrorList, parts []string) {
	for _, e := range errs {
		part := partOfField(o, e.Field)
		if part == "" || !isUnchanged(part) {
			rest = append(rest, e)
			continue
		}
		parts = append(parts, part)
	}
	return rest, parts
}

// partOfField are the machines whose selection a field belongs to; "" if it does not.
func partOfField(o *v1alpha1.WorkloadCluster, path string) string {
	spec := field.NewPath("spec")
	is := func(at *field.Path) bool {
		rest, ok := strings.CutPrefix(path, at.String()+".")
		name, _, _ := strings.Cut(rest, ".")
		return ok && (name == "machineType" || name == "machine")
	}
	if is(spec.Child("controlPlane")) {
		return controlPlanePart
	}
	for i, p := range o.Spec.Workers {
		if is(spec.Child("workers").Index(i)) {
			return p.Name
		}
	}
	return ""
}

// ClearMachineSelections is a question that leaves the machines of some parts to the provider: it would say again that it has none
// such, and what it said once is kept.
func ClearMachineSelections(in provider.Input, parts []string) provider.Input {
	if len(parts) == 0 {
		return in
	}
	in.Cluster = in.Cluster.DeepCopy()
	if slices.Contains(parts, controlPlanePart) {
		in.Cluster.Spec.ControlPlane.MachineSelection = v1alpha1.MachineSelection{}
	}
	for i, p := range in.Cluster.Spec.Workers {
		if slices.Contains(parts, p.Name) {
			in.Cluster.Spec.Workers[i].MachineSelection = v1alpha1.MachineSelection{}
		}
	}
	return in
}
