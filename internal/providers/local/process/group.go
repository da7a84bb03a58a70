package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// group is a process group, by the number of its leader, which is a child of ours. The number
// is surely this group's as long as the leader has not been reaped: signals are sent only until then.
type group int

// groupPollInterval is how often a dying group is checked; the kernel notifies nobody but its parent.
const groupPollInterval = 5 * time.Millisecond

// The errors of kill are ignored: a group whose leader is not reaped exists, and one that
// became another user's cannot be helped.
func (g group) terminate() { _ = unix.Kill(-int(g), unix.SIGTERM) }
func (g group) kill()      { _ = unix.Kill(-int(g), unix.SIGKILL) }

// leaderExited returns a channel that closes when the leader has ended. That does not reap the leader.
func (g group) leaderExited() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for errors.Is(unix.Waitid(unix.P_PID, int(g), nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
			continue // the Go runtime interrupts for its own reasons
		}
	}()
	return ended
}

// waitUntilGone waits, for limit at most, until nothing runs of a group that was killed and whose
// leader was reaped. The limit matters for processes in the midst of I/O that cannot be interrupted.
func (g group) waitUntilGone(limit time.Duration) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(groupPollInterval)
	defer tick.Stop()
	for g.exists() && g.hasRunningMember() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}

// exists says whether the group has members, zombies included. It first reaps those that fell to us: orphans do if we
// are PID 1 of a container.
func (g group) exists() bool {
	for {
		pid, err := unix.Wait4(-int(g), nil, unix.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return !errors.Is(unix.Kill(-int(g), 0), unix.ESRCH)
}

// hasRunningMember says whether a member is more than a zombie, which some inits leave for seconds. A zombie of our own
// counts as more: exists reaps it.
func (g group) hasRunningMember() bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // we cannot know
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// "PID (name) state parent group …", where the name may hold anything.
		var state rune
		var parent, pgrp int
		_, err = fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d %d", &state, &parent, &pgrp)
		if err == nil && pgrp == int(g) && (state != 'Z' || parent == os.Getpid()) {
			return true
		}
	}
	return false
}
