package topology

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// HasSameInput reports whether a change leaves alone all that a provider is asked about: it is only of numbers of
// machines, labels and taints, pause or protection. Such a change must go through even if the provider is away.
func HasSameInput(o, old *v1alpha1.WorkloadCluster) bool {
	a, err := DigestInput(o, "", provider.Description{})
	b, err2 := DigestInput(old, "", provider.Description{})
	return err == nil && err2 == nil && a.InputDigest == b.InputDigest && o.Spec.Provider == old.Spec.Provider &&
		o.Spec.Stack == old.Spec.Stack
}

// DropUnchangedMachineErrors returns the provider's errors against a change, without those against machines that were
// asked for in the same way before: they are there, and stay. own are the parameters of the provider.
func DropUnchangedMachineErrors(o, old *v1alpha1.WorkloadCluster, own map[string]map[string]any,
	errs field.ErrorList) field.ErrorList {
	d := provider.Description{Parameters: own}
	a, err := DigestInput(o, "", d)
	b, err2 := DigestInput(old, "", d)
	// The digests are without a release, so the stack is compared here: with another one all machines are asked for
	// anew.
	if err != nil || err2 != nil || o.Spec.Provider != old.Spec.Provider || o.Spec.Stack != old.Spec.Stack {
		return errs
	}
	rest, _ := SplitMachineErrors(o, errs, func(part string) bool { return a.PartDigests[part] == b.PartDigests[part] })
	return rest
}

// SplitMachineErrors divides errors against a spec into those that must be reported, and the parts whose errors are
// dropped because their machines are unchanged.
func SplitMachineErrors(o *v1alpha1.WorkloadCluster, errs field.ErrorList,
	isUnchanged func(part string) bool) (rest field.ErrorList, parts []string) {
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

// partOfField returns the part whose machine selection a field belongs to; "" if it belongs to none.
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

// ClearMachineSelections returns an input without the machine selections of some parts: the provider would refuse them
// again, and its earlier answer for them is kept.
func ClearMachineSelections(in provider.Input, parts []string) provider.Input {
	if len(parts) == 0 {
		return in
	}
	// The WorkloadCluster is shared with the caller, and may come from the cache.
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
