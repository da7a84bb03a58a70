package confine

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// uselessCalls are needed by none of our programs, and have been ways out of confinements: the memory of other
// processes, namespaces and mounts, keys, programs in the kernel, rings that no filter sees, files by handle.
var uselessCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_PERSONALITY,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MKNODAT,
}

// componentCalls start programs and signal other processes, which only a host does.
var componentCalls = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_SOCKETPAIR,
}

// watcherCalls make watchers of files, of which a user may have few (see kubelet.ManifestWatcher) and each API server
// takes five. Without one Kubernetes reads its certificates and configuration every minute.
var watcherCalls = []uint32{unix.SYS_INOTIFY_INIT1}

// newNamespaces are the flags of clone that none of our programs uses once it is confined.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// role is what a process is for.
type role int

const (
	roleHost      role = iota // starts programs, and answers on a unix socket
	roleComponent             // starts nothing, signals nobody, and speaks no unix socket
)

// Where the kernel puts what a filter looks at; of an argument, the lower half on little-endian machines.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16
)

// x32 is the bit that tells calls of the x32 interface from those of x86-64.
const x32 = 1 << 30

func deny(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)} //nolint:gosec // a small number
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// filter is the program the kernel runs before every call of a process of this role: what is listed fails, all else
// passes. A list of what may pass would have to follow every release of Go's runtime. Calls in the manner of another
// architecture have other numbers, so there is no answer to them but the end.
func filter(r role, pid int) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		// The flags of clone3 are in memory, where no filter can look; callers fall back to clone.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1},
		deny(unix.ENOSYS),
	}
	denied := append(append([]uint32{}, uselessCalls...), oldUselessCalls...)
	if r == roleComponent {
		denied = append(append(denied, componentCalls...), oldComponentCalls...)
	}
	for _, n := range denied {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: 1}, deny(unix.EPERM))
	}
	if r == roleComponent {
		for _, n := range append(watcherCalls, oldWatcherCalls...) {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: 1}, deny(unix.EMFILE)) // as if there were none left
		}
	}
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 4},
		bpf.LoadAbsolute{Off: offsetArgument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1},
		deny(unix.EPERM),
		allow,
	)
	if r == roleComponent {
		p = append(p, onlyFirstArgument(unix.SYS_SOCKET, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)...)
		// Go's runtime interrupts its threads, and etcd ends itself by a signal.
		p = append(p, onlyFirstArgument(unix.SYS_TGKILL, uint32(pid))...) //nolint:gosec // a process's number
		p = append(p, onlyFirstArgument(unix.SYS_KILL, uint32(pid))...)   //nolint:gosec // as above
	}
	return append(p, allow)
}

// onlyFirstArgument lets a call pass if its first argument, an int, is one of these.
func onlyFirstArgument(number uint32, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(2*len(values) + 2)}, //nolint:gosec // a few
		bpf.LoadAbsolute{Off: offsetArgument, Size: 4},
	}
	for _, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, allow)
	}
	return append(p, deny(unix.EPERM))
}

// filterCalls installs the filter of a role on all threads. It cannot be taken back.
func filterCalls(r role) error {
	raw, err := bpf.Assemble(filter(r, os.Getpid()))
	if err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		code[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} //nolint:gosec // at most 4,096
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	other, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the system call takes a pointer
	if errno != 0 {
		return fmt.Errorf("filtering system calls: %w", errno)
	}
	if other != 0 {
		return fmt.Errorf("filtering system calls: thread %d cannot be filtered", other)
	}
	return nil
}
