package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// setNamespaces makes a process start in namespaces of its own, as the same user, with just the rights inside them that
// it needs to set them up; it gives those up afterwards.
func setNamespaces(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = append(a.AmbientCaps, unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP)
}

// enterNamespaces makes the namespaces a place to work in: the loopback network is up, and of all files there are those
// of dir and what every program reads. The rights for that are gone when it returns.
func enterNamespaces(dir string) error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("bringing the network up: %w", err)
	}
	if err := changeRoot(dir); err != nil {
		return fmt.Errorf("leaving the file system: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return nil
}

// raiseLoopback brings up the only interface of a new network.
func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was sent
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// readable are the files outside a cluster's directory that its programs read: certificates of authorities, names,
// time zones, and limits of CPU, which Go's runtime heeds. Those that are not there are left out.
var readable = []string{
	"/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
	"/etc/hosts", "/etc/localtime", "/usr/share/zoneinfo", "/sys/fs/cgroup",
}

const (
	procDir  = "/proc"
	nullFile = "/dev/null"
	newRoot  = "/dev" // a folder that is everywhere
)

// bind is a file or folder that is to be seen in the new root at the path it has in the old one.
type bind struct {
	path string
	fd   int
	dir  bool
}

// changeRoot replaces the root by an empty one that shows only what is needed, each at the path it had.
func changeRoot(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to ourselves: %w", err)
	}
	binds, err := openBinds(append([]string{dir, procDir, nullFile}, readable...))
	if err != nil {
		return err
	}
	defer closeBinds(binds)
	// What it hides is open already. It must not be below one of these, or it would be shown with it.
	if err := unix.Mount("polder", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0755"); err != nil {
		return fmt.Errorf("mounting an empty root: %w", err)
	}
	for _, b := range binds {
		if err := b.mountBelow(newRoot); err != nil {
			return fmt.Errorf("showing %s: %w", b.path, err)
		}
	}
	if err := pivotRoot(newRoot); err != nil {
		return err
	}
	return unix.Chdir(dir)
}

func openBinds(paths []string) ([]bind, error) {
	var all []bind
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) && slices.Contains(readable, p) {
			continue
		}
		if err != nil {
			closeBinds(all)
			return nil, fmt.Errorf("opening %s: %w", p, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			closeBinds(append(all, bind{fd: fd}))
			return nil, fmt.Errorf("opening %s: %w", p, err)
		}
		all = append(all, bind{path: p, fd: fd, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	return all, nil
}

func closeBinds(all []bind) {
	for _, b := range all {
		_ = unix.Close(b.fd) // a name, no file
	}
}

func (b bind) mountBelow(root string) error {
	at := filepath.Join(root, b.path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	var err error
	if b.dir {
		err = os.MkdirAll(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o600)
	}
	if err != nil {
		return err
	}
	// With all that is mounted below it: the kernel shows a part of a folder to nobody from whom it was hidden.
	return unix.Mount(fmt.Sprintf("%s/self/fd/%d", procDir, b.fd), at, "", unix.MS_BIND|unix.MS_REC, "")
}

// pivotRoot makes root the root of all files, and forgets the old one.
func pivotRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount("", ".", "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=1m"); err != nil {
		return fmt.Errorf("closing the new root: %w", err)
	}
	// Both at one place: the old root lies upon the new one, where it is unmounted.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("forgetting the old root: %w", err)
	}
	return nil
}

// dropCapabilities gives up every right of this process in its user namespace, on all its threads, and the way to get
// one by starting a program.
func dropCapabilities() error {
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// The kernel may know fewer than we do.
		if err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	//nolint:gosec // the system call takes pointers
	return onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
}

func onAllThreads(trap, a, b, c uintptr) error {
	if _, _, errno := psx.Syscall6(trap, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
