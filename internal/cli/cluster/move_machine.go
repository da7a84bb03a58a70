package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/machinetype"
)

// hasMachines says that a provider has such machines.
func hasMachines(p *v1alpha1.Provider, s v1alpha1.MachineSelection) bool {
	switch portable, err := machinetype.Parse(s.MachineType); {
	case s.Machine != nil:
		return p.Status.AnyShape || slices.ContainsFunc(p.Status.MachineTypes,
			func(t v1alpha1.MachineType) bool { return satisfiesShape(t, s.Machine) })
	case s.MachineType == "":
		return true
	case err == nil && p.Status.AnyShape && portable.SpecialRequirement() == "":
		return true
	}
	return slices.ContainsFunc(p.Status.MachineTypes, func(t v1alpha1.MachineType) bool {
		return t.Name == s.MachineType || t.Portable == s.MachineType
	})
}

// isSameMachine says that machines are the same at two providers that both have them. A name that only a provider
// gives a meaning means the same only if both say so.
func isSameMachine(s v1alpha1.MachineSelection, from, to *v1alpha1.Provider) bool {
	if _, err := machinetype.Parse(s.MachineType); s.Machine != nil || err == nil {
		return true
	}
	a, b := machineTypeOf(from, s.MachineType), machineTypeOf(to, s.MachineType)
	return a != nil && b != nil && a.CPU > 0 && a.CPU == b.CPU && a.MemoryMiB == b.MemoryMiB && a.DiskGB == b.DiskGB &&
		a.Portable == b.Portable
}

// machineTypeOf is a machine type of a provider; nil if it has none of that name, or nobody knows.
func machineTypeOf(p *v1alpha1.Provider, name string) *v1alpha1.MachineType {
	if p == nil {
		return nil
	}
	for i, t := range p.Status.MachineTypes {
		if t.Name == name {
			return &p.Status.MachineTypes[i]
		}
	}
	return nil
}

// satisfiesShape wants at least as much of everything: a larger machine will do, a smaller one will not.
func satisfiesShape(t v1alpha1.MachineType, s *v1alpha1.MachineShape) bool {
	enough := t.CPU >= s.CPU && int64(t.MemoryMiB)<<20 >= s.Memory.Value()
	// without a disk of its own, one is attached
	return enough && (s.Disk == nil || t.DiskGB == 0 || int64(t.DiskGB)*1e9 >= s.Disk.Value())
}

// equivalentSelections are other ways to say what machines are meant: a portable name, then a shape. It is empty if
// nobody knows what a name means.
func equivalentSelections(s v1alpha1.MachineSelection, from *v1alpha1.Provider) (others []v1alpha1.MachineSelection) {
	if t, err := machinetype.Parse(s.MachineType); err == nil {
		if t.SpecialRequirement() != "" || t.Disks > 1 {
			return nil // which no shape can say
		}
		return []v1alpha1.MachineSelection{newShapeSelection(t.CPUs, t.MemoryMiB, t.DiskGB)}
	}
	t := machineTypeOf(from, s.MachineType)
	if t == nil {
		return nil
	}
	if t.Portable != "" {
		others = append(others, v1alpha1.MachineSelection{MachineType: t.Portable})
	}
	if t.CPU > 0 && t.MemoryMiB > 0 {
		others = append(others, newShapeSelection(int(t.CPU), int(t.MemoryMiB), int(t.DiskGB)))
	}
	return others
}

// newShapeSelection asks for machines by size, which every provider understands.
func newShapeSelection(cpus, memoryMiB, diskGB int) v1alpha1.MachineSelection {
	s := &v1alpha1.MachineShape{
		CPU:    int32(cpus), //nolint:gosec // no machine has more
		Memory: *resource.NewQuantity(int64(memoryMiB)<<20, resource.BinarySI),
	}
	if diskGB > 0 {
		s.Disk = resource.NewQuantity(int64(diskGB)*1e9, resource.DecimalSI)
	}
	return v1alpha1.MachineSelection{Machine: s}
}

// machineTypesHint is empty where the command would show no types.
func machineTypesHint(p *v1alpha1.Provider) string {
	if len(p.Status.MachineTypes) == 0 {
		return ""
	}
	return "; see what it has with: polder providers " + p.Name
}
