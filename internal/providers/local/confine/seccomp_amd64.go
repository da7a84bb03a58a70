package confine

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// Calls that only old architectures have.
var (
	oldUselessCalls   = []uint32{unix.SYS_MKNOD, unix.SYS_USELIB, unix.SYS_MODIFY_LDT, unix.SYS_IOPL, unix.SYS_IOPERM}
	oldComponentCalls = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
	oldWatcherCalls   = []uint32{unix.SYS_INOTIFY_INIT}
)
