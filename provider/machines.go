package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider/machinetype"
)

// Shape is what a machine must have at least.
type Shape struct {
	CPUs, MemoryMiB, DiskGB int
}

// Limits of shapes, so that sizes fit into numbers.
const (
	maxMemoryMiB = 64 << 20
	maxDiskGB    = 1 << 20
)

// memoryStepMiB is what sizes of memory in portable names are multiples of.
const memoryStepMiB = 512

// ShapeOf reads a shape. Sizes are rounded up.
func ShapeOf(m v1alpha1.MachineShape) (Shape, error) {
	s := Shape{CPUs: int(m.CPU)}
	var err error
	if s.MemoryMiB, err = unitsOf(m.Memory, 1<<20, maxMemoryMiB); err != nil {
		return s, fmt.Errorf("memory: %w", err)
	}
	if s.MemoryMiB == 0 {
		return s, fmt.Errorf("memory: write how much, for example 4Gi")
	}
	if m.Disk != nil {
		if s.DiskGB, err = unitsOf(*m.Disk, 1e9, maxDiskGB); err != nil {
			return s, fmt.Errorf("disk: %w", err)
		}
	}
	return s, nil
}

// unitsOf converts a quantity to units, rounded up. It is compared with the limit before it is made an integer, which
// one that is too large cannot be, nor one with parts of bytes such as 1.3Gi. One with an exponent is not even
// compared: 1e2000000000 would be written out for it, digit by digit.
func unitsOf(q resource.Quantity, unit, most int64) (int, error) {
	if q.Sign() < 0 {
		return 0, fmt.Errorf("%s is less than nothing", q.String())
	}
	if q.Format == resource.DecimalExponent {
		return 0, fmt.Errorf("%s has an exponent; write it with a unit, for example 4Gi", q.String())
	}
	if q.Cmp(*resource.NewQuantity(most*unit, resource.BinarySI)) > 0 {
		return 0, fmt.Errorf("%s is more than any machine has", q.String())
	}
	return int((q.Value() + unit - 1) / unit), nil
}

// IsPortable says that a selection means the same at every provider.
func IsPortable(m v1alpha1.MachineSelection) bool {
	return m.Machine != nil || m.MachineType == "" || strings.HasPrefix(m.MachineType, machinetype.Prefix)
}

// ChooseMachineType finds the provider's machine type for what is asked for: the one of that name; or the one that is
// called so by the standard; or the smallest that has all that is asked for. It is "" if nothing is asked for.
// At a provider that makes any shape, it is the portable name.
func (d Description) ChooseMachineType(m v1alpha1.MachineSelection) (string, error) {
	if m.Machine == nil && m.MachineType == "" {
		return "", nil
	}
	if m.MachineType != "" {
		for _, t := range d.MachineTypes {
			if t.Name == m.MachineType || t.Portable == m.MachineType {
				return t.Name, nil
			}
		}
	}
	want, err := d.requestedShape(m)
	if err != nil {
		return "", err
	}
	large := slices.DeleteFunc(slices.Clone(d.MachineTypes),
		func(t v1alpha1.MachineType) bool { return !hasCapacity(t, want) })
	fits := slices.DeleteFunc(slices.Clone(large),
		func(t v1alpha1.MachineType) bool { return hasSharedCPUs(t, m.MachineType) })
	slices.SortFunc(fits, compareSize)
	switch {
	case len(fits) > 0:
		return fits[0].Name, nil
	case d.AnyShape && m.Machine != nil && want.MemoryMiB%memoryStepMiB != 0:
		return "", fmt.Errorf("memory: machines have whole or half GiB; write %s",
			nextSizes(want.MemoryMiB/memoryStepMiB*memoryStepMiB))
	case d.AnyShape:
		return portableName(m, want), nil
	case len(large) > 0:
		return "", fmt.Errorf("%s has no machine type %q: its machines of that size share their CPUs; %s", d.Name,
			m.MachineType, d.describeChoices())
	}
	return "", fmt.Errorf("%s has no machine with %s; %s", d.Name, want, d.describeLargest())
}

// ChosenShape is the size of the machine that is chosen for what is asked for, and whether it is known: nobody here
// knows the size of a provider's default.
func (d Description) ChosenShape(m v1alpha1.MachineSelection) (Shape, bool) {
	name, err := d.ChooseMachineType(m)
	if err != nil || name == "" {
		return Shape{}, false
	}
	s := Shape{}
	if i := slices.IndexFunc(d.MachineTypes, func(t v1alpha1.MachineType) bool { return t.Name == name }); i >= 0 {
		t := d.MachineTypes[i]
		s = Shape{CPUs: int(t.CPU), MemoryMiB: int(t.MemoryMiB), DiskGB: int(t.DiskGB)}
	} else {
		t, err := machinetype.Parse(name)
		if err != nil {
			return Shape{}, false
		}
		s = Shape{CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, DiskGB: t.DiskGB * max(1, t.Disks)}
	}
	if s.DiskGB == 0 {
		want, err := d.requestedShape(m) // it boots from a volume of the size that is asked for
		if err == nil {
			s.DiskGB = want.DiskGB
		}
	}
	return s, true
}

// requestedShape is the shape that is asked for.
func (d Description) requestedShape(m v1alpha1.MachineSelection) (Shape, error) {
	if m.Machine != nil {
		return ShapeOf(*m.Machine)
	}
	if !strings.HasPrefix(m.MachineType, machinetype.Prefix) {
		return Shape{}, fmt.Errorf("%s has no machine type %q; %s", d.Name, m.MachineType, d.describeChoices())
	}
	t, err := machinetype.Parse(m.MachineType)
	if err != nil {
		return Shape{}, err
	}
	if what := t.SpecialRequirement(); what != "" {
		return Shape{}, fmt.Errorf("%s has no machine type %q, and no other has %s for certain; %s", d.Name, m.MachineType,
			what, d.describeChoices())
	}
	return Shape{CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, DiskGB: t.DiskGB}, nil
}

// hasSharedCPUs says that a type is known to share its CPUs more than the portable name that is asked for allows.
func hasSharedCPUs(t v1alpha1.MachineType, asked string) bool {
	have, err := machinetype.Parse(t.Portable)
	want, err2 := machinetype.Parse(asked)
	return err == nil && err2 == nil && slices.Index(cpuShareOrder, have.CPU) < slices.Index(cpuShareOrder, want.CPU)
}

// cpuShareOrder lists the sorts of CPUs, those that are shared most first.
var cpuShareOrder = []machinetype.CPU{machinetype.LowShare, machinetype.Virtual, machinetype.Thread, machinetype.Core}

func (s Shape) String() string {
	out := fmt.Sprintf("%d CPUs and %d MiB of memory", s.CPUs, s.MemoryMiB)
	if s.DiskGB > 0 {
		out = fmt.Sprintf("%d CPUs, %d MiB of memory and %d GB of disk", s.CPUs, s.MemoryMiB, s.DiskGB)
	}
	return out
}

// hasCapacity says that a type has all that is asked for. A disk is not asked of a type that has none of its own:
// it boots from a volume of any size.
func hasCapacity(t v1alpha1.MachineType, s Shape) bool {
	return int(t.CPU) >= s.CPUs && int(t.MemoryMiB) >= s.MemoryMiB && (t.DiskGB == 0 || int(t.DiskGB) >= s.DiskGB)
}

// compareSize orders types by size and then by name, so that the same one is always chosen.
func compareSize(a, b v1alpha1.MachineType) int {
	return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(a.DiskGB, b.DiskGB),
		strings.Compare(a.Name, b.Name))
}

// portableName is the portable name of a shape. Memory in names is in halves of a GiB.
func portableName(m v1alpha1.MachineSelection, s Shape) string {
	if m.MachineType != "" {
		return m.MachineType
	}
	t := machinetype.Type{CPUs: s.CPUs, CPU: machinetype.Virtual, MemoryMiB: s.MemoryMiB}
	if s.DiskGB > 0 {
		t.Disks, t.DiskGB = 1, s.DiskGB
	}
	return t.String()
}

// nextSizes are the one that is given, if it is one, and the next.
func nextSizes(mib int) string {
	next := fmt.Sprintf("%dMi", mib+memoryStepMiB)
	if mib == 0 {
		return next
	}
	return fmt.Sprintf("%dMi or %s", mib, next)
}

// maxListedTypes is how many machine types an error message names.
const maxListedTypes = 10

func (d Description) describeChoices() string {
	if len(d.MachineTypes) == 0 {
		return "write a portable name, for example SCS-2V-4"
	}
	var names []string
	for i, t := range d.MachineTypes {
		if i == maxListedTypes {
			names = append(names, fmt.Sprintf("and %d more", len(d.MachineTypes)-maxListedTypes))
			break
		}
		names = append(names, t.Name)
	}
	return "choose from " + strings.Join(names, ", ") + ", or write a portable name, for example SCS-2V-4"
}

func (d Description) describeLargest() string {
	if len(d.MachineTypes) == 0 {
		return "it has none at all"
	}
	l := slices.MaxFunc(d.MachineTypes, compareSize)
	return fmt.Sprintf("its largest is %s with %d CPUs and %d MiB of memory", l.Name, l.CPU, l.MemoryMiB)
}
