package machinetype

import (
	"fmt"
	"strings"
)

// String is the name. Parse reads it as the same type.
func (t Type) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d%c", Prefix, t.CPUs, t.CPU)
	writeIf(&b, t.Insecure, "i")
	fmt.Fprintf(&b, "-%d", t.MemoryMiB/1024)
	writeIf(&b, t.MemoryMiB%1024 != 0, ".5")
	writeIf(&b, t.NoECC, "u")
	writeIf(&b, t.Overcommitted, "o")
	if t.Disks > 0 {
		b.WriteByte('-')
		if t.Disks > 1 {
			fmt.Fprintf(&b, "%dx", t.Disks)
		}
		if t.DiskGB > 0 {
			fmt.Fprintf(&b, "%d", t.DiskGB)
		}
		if t.Disk != AnyDisk {
			b.WriteByte(byte(t.Disk))
		}
	}
	for _, e := range []string{t.Hypervisor, textIf(t.Nested, "hwv"), t.Processor, t.GPU, textIf(t.InfiniBand, "ib")} {
		writeIf(&b, e != "", "_"+e)
	}
	return b.String()
}

func writeIf(b *strings.Builder, is bool, text string) {
	if is {
		b.WriteString(text)
	}
}

func textIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// Satisfies says that a machine of this type has all that is asked for by its shape; 0 asks for nothing.
func (t Type) Satisfies(cpus, memoryMiB, diskGB int) bool {
	return t.CPUs >= cpus && t.MemoryMiB >= memoryMiB && (diskGB == 0 || t.Disks > 0 && t.DiskGB >= diskGB)
}
