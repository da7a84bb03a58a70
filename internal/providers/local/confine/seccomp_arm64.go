package confine

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// Calls that only old architectures have; this is none.
var oldUselessCalls, oldComponentCalls, oldWatcherCalls []uint32
