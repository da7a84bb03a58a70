package machinetype

import (
	"fmt"
	"strings"
)

// String is the name. Parse reads it as the same type.
func (t Type) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d%c", Prefix, t.CPUs, t.CPU)
	mark(&b, t.Insecure, "i")
	fmt.Fprintf(&b, "-%d", t.MemoryMiB/1024)
	mark(&b, t.MemoryMiB%1024 != 0, ".5")
	mark(&b, t.NoECC, "u")
	mark(&b, t.Overcommitted, "o")
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
	for _, e := range []string{t.Hypervisor, given(t.Nested, "hwv"), t.Processor, t.GPU, given(t.InfiniBand, "ib")} {
		mark(&b, e != "", "_"+e)
	}
	return b.String()
}

func mark(b *strings.Builder, is bool, text string) {
	if is {
		b.WriteString(text)
	}
}

func given(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// Gives says that a machine of this type has all that is asked for by its shape; 0 asks for nothing.
func (t Type) Gives(cpus, memoryMiB, diskGB int) bool {
	return t.CPUs >= cpus && t.MemoryMiB >= memoryMiB && (diskGB == 0 || t.Disks > 0 && t.DiskGB >= diskGB)
}
