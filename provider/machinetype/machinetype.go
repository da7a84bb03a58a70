// Package machinetype reads names of machines that mean the same at every provider. They follow the standard
// scs-0100: SCS-4V-16-50s has four vCPUs, 16 GiB of memory and a local SSD of 50 GB.
package machinetype

import (
	"fmt"
	"strconv"
	"strings"
)

// Prefix is how portable names begin; whatever begins otherwise is a provider's own.
const Prefix = "SCS-"

// CPU says whether a machine's CPUs are its own or shared.
type CPU byte

// CPUs, from the best to the worst.
const (
	Core     CPU = 'C' // a core of one's own
	Thread   CPU = 'T' // a thread of one's own
	Virtual  CPU = 'V' // shared, but a fifth of a core is certain
	LowShare CPU = 'L' // shared by more
)

// Disk is the sort of a disk.
type Disk byte

// Disks.
const (
	AnyDisk   Disk = 0
	Network   Disk = 'n'
	HardDisk  Disk = 'h'
	SolidDisk Disk = 's'
	NVMe      Disk = 'p'
)

// Type is what a name says.
type Type struct {
	CPUs     int
	CPU      CPU
	Insecure bool // without all mitigations of faults of CPUs

	MemoryMiB     int
	NoECC         bool
	Overcommitted bool // its memory

	Disks  int  // none: there is no disk, and it is booted from a volume
	DiskGB int  // of each; 0 is as large as the image needs
	Disk   Disk // of each

	Extensions // what else the name says
}

// Parse reads a name. The error says what is wrong in it.
func Parse(name string) (Type, error) {
	var t Type
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return t, fmt.Errorf("%.80q is no portable name of a machine type: those begin with %s, for example SCS-2V-4", name,
			Prefix)
	}
	base, extensions, extended := strings.Cut(rest, "_")
	parts := strings.SplitN(base, "-", 3)
	if len(parts) < 2 {
		return t, invalidName(name, "it has no memory")
	}
	if why := t.readCPU(parts[0]); why != "" {
		return t, invalidName(name, why)
	}
	if why := t.readMemory(parts[1]); why != "" {
		return t, invalidName(name, why)
	}
	if len(parts) == 3 {
		if why := t.readDisk(parts[2]); why != "" {
			return t, invalidName(name, why)
		}
	}
	if extended {
		if why := t.parseExtensions(extensions); why != "" {
			return t, invalidName(name, why)
		}
	}
	return t, nil
}

func invalidName(name, why string) error {
	return fmt.Errorf("%.80q is no machine type: %s; a name is SCS-, CPUs with C, T, V or L, - and GiB of memory, and perhaps - and GB of disk, for example SCS-4V-16-50s", name, why)
}

// readCPU reads 2V or 2Vi.
func (t *Type) readCPU(s string) (why string) {
	digits, suffix := splitDigits(s)
	var ok bool
	if t.CPUs, ok = parseNumber(digits); !ok || t.CPUs == 0 {
		return fmt.Sprintf("%.20q is no number of CPUs", s)
	}
	if rest, insecure := strings.CutSuffix(suffix, "i"); insecure {
		t.Insecure, suffix = true, rest
	}
	if len(suffix) != 1 || !strings.Contains("CTVL", suffix) {
		return fmt.Sprintf("%.20q does not say what CPUs they are", s)
	}
	t.CPU = CPU(suffix[0])
	return ""
}

// readMemory reads 4, 3.5, 4u, 4o or 4uo.
func (t *Type) readMemory(s string) (why string) {
	size := s
	size, t.Overcommitted = strings.CutSuffix(size, "o")
	size, t.NoECC = strings.CutSuffix(size, "u")
	whole, half := strings.CutSuffix(size, ".5")
	gib, ok := parseNumber(whole)
	if !ok || gib == 0 && !half {
		return fmt.Sprintf("%.20q is no amount of memory in GiB, or half ones", s)
	}
	t.MemoryMiB = gib * 1024
	if half {
		t.MemoryMiB += 512
	}
	return ""
}

// readDisk reads 50, 50s, 2x50s, s or nothing.
func (t *Type) readDisk(s string) (why string) {
	t.Disks = 1
	size := s
	if n := len(size); n > 0 && strings.Contains("nhsp", size[n-1:]) {
		t.Disk, size = Disk(size[n-1]), size[:n-1]
	}
	var ok bool
	if count, each, several := strings.Cut(size, "x"); several {
		if t.Disks, ok = parseNumber(count); !ok || t.Disks == 0 || each == "" {
			return fmt.Sprintf("%.20q is no number of disks", s)
		}
		size = each
	}
	if size != "" {
		if t.DiskGB, ok = parseNumber(size); !ok || t.DiskGB == 0 {
			return fmt.Sprintf("%.20q is no disk: it is GB, and n, h, s or p for what disk it is", s)
		}
	}
	return ""
}

// splitDigits separates leading digits from the rest.
func splitDigits(s string) (digits, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// parseNumber reads a plain number, without signs and leading zeros, of at most six digits: no machine will outgrow
// that.
func parseNumber(s string) (int, bool) {
	if s == "" || len(s) > 6 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}
