// Package partition cuts a process of a local machine off from those of other machines, as if its network were broken,
// and connects it again. All machines of a cluster are in one network, which nobody may change once the cluster is
// confined; but what arrives at a process's own sockets it may throw away itself, without any right.
package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// file, below the root of a machine, is there while the machine is cut off. Its processes read it when they start, and
// after each Signal.
const file = "run/polder/partitioned"

// Environment is needed by a process that runs Watch: Go listens for multipath TCP, whose sockets throw nothing away.
const Environment = "GODEBUG=multipathtcp=0"

// Signal tells a process that runs Watch to look whether its machine is cut off.
const Signal = syscall.SIGUSR1

// Mark records, below the root of a machine's files, whether it is cut off. What else is there was written by people
// whom nobody trusts, so no link leads out of it.
func Mark(root string, on bool) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // nothing to lose
	if on {
		if err := r.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		return r.WriteFile(file, nil, 0o600)
	}
	if err := r.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isMarked reads what Mark has written. It is for a process in the root of its machine.
func isMarked() bool {
	_, err := os.Stat(file)
	return err == nil
}

// scanInterval is how often a process that is cut off looks for new connections of its own: the kernel makes them
// before anybody can say no. In so short a time two etcds come no further than to their handshake.
const scanInterval = time.Millisecond

// Watch cuts this process off from others, on one port, while its machine is marked. It runs until ctx ends.
func Watch(ctx context.Context, port int) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, Signal)
	defer signal.Stop(changes)
	for ctx.Err() == nil {
		if isMarked() {
			dropUntil(changes, ctx.Done(), port)
			continue
		}
		select {
		case <-ctx.Done():
		case <-changes:
		}
	}
}

// dropUntil cuts every connection on the port, or to that port of others, until there is a change.
func dropUntil(changes <-chan os.Signal, done <-chan struct{}, port int) {
	tick := time.NewTicker(scanInterval)
	defer tick.Stop()
	for {
		eachSocket(port, cut)
		select {
		case <-done:
			return
		case <-changes:
			eachSocket(port, mend)
			return
		case <-tick.C:
		}
	}
}

// eachSocket calls f for each TCP socket of this process that has the port at either end. A descriptor may be closed
// before f sees it, and be another connection by then: its client connects again.
func eachSocket(port int, f func(fd int)) {
	for _, fd := range openFiles() {
		local, err := unix.Getsockname(fd)
		if err != nil {
			continue // no socket
		}
		remote, _ := unix.Getpeername(fd) // one that listens has none
		if portOf(local) == port || portOf(remote) == port {
			f(fd)
		}
	}
}

// openFiles lists the descriptors of this process.
func openFiles() []int {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // nothing was written
	names, _ := d.Readdirnames(-1)
	all := make([]int, 0, len(names))
	for _, n := range names {
		var fd int
		if _, err := fmt.Sscan(n, &fd); err == nil {
			all = append(all, fd)
		}
	}
	slices.Sort(all)
	return all
}

func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}

// cut makes the kernel throw away all packets that arrive at a socket, as if they had been lost on their way: with one
// that listens nobody can connect. One that is connected is ended as well, since what it sends would still arrive.
func cut(fd int) {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	// Both fail for a socket that was closed since, and the second for one that listens.
	_ = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: 1, Filter: &nothing[0]})
	if listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listening == 0 {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
}

// mend lets people connect again.
func mend(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) // one without filter is as it should be
}
