package machinetype

import (
	"fmt"
	"regexp"
	"strings"
)

// Extensions are details that few names have. What a name does not say is not known.
type Extensions struct {
	Hypervisor string // kvm, xen, vmw, hyv, or bms for none
	Nested     bool   // virtual machines can be run in it
	Processor  string // i, z, a or r, with a generation and h for its speed, such as z3h
	GPU        string // G or g if it is shared, whose it is, and details, such as GNa-14h
	InfiniBand bool
}

// Forms of extensions; setExtension has their order.
var (
	processorPattern = regexp.MustCompile(`^[izar][0-9]*h{0,3}$`)
	gpuPattern       = regexp.MustCompile(`^[Gg][NAI](0\.[0-9]+|[0-9]+|[a-z])?(-[1-9][0-9]*h*)?$`)
	hypervisors      = []string{"kvm", "xen", "vmw", "hyv", "bms"}
)

// parseExtensions reads extensions, which are separated by underscores and must be in order. It returns what is wrong,
// or "".
func (e *Extensions) parseExtensions(s string) (why string) {
	last := 0
	for part := range strings.SplitSeq(s, "_") {
		order := e.setExtension(part)
		switch {
		case order == 0:
			return fmt.Sprintf("nobody knows the extension %.20q", part)
		case order <= last:
			return fmt.Sprintf("the extension %.20q is out of order", part)
		}
		last = order
	}
	return ""
}

// setExtension sets what one extension says, and returns its place among them; 0 if it is none.
func (e *Extensions) setExtension(part string) (order int) {
	for _, h := range hypervisors {
		if part == h {
			e.Hypervisor = h
			return 1
		}
	}
	switch {
	case part == "hwv":
		e.Nested = true
		return 2
	case part == "ib":
		e.InfiniBand = true
		return 5
	case processorPattern.MatchString(part):
		e.Processor = part
		return 3
	case gpuPattern.MatchString(part):
		e.GPU = part
		return 4
	}
	return 0
}

// SpecialRequirement is what programs may need of a type beyond its size, so that no other type can stand in for it.
func (t Type) SpecialRequirement() string {
	switch {
	case t.GPU != "":
		return "that GPU"
	case t.InfiniBand:
		return "InfiniBand"
	case t.Nested:
		return "virtual machines within it"
	case t.Hypervisor == "bms":
		return "no hypervisor"
	}
	return ""
}
