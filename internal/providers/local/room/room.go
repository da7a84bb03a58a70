// Package room says whether a computer has room for another local cluster. A cluster that is accepted without room does
// not fail: its processes are killed, or wait, one after the other and without a word.
package room

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What a machine of a control plane takes when its cluster is small, as measured: 310 MiB, 125 MB of disk, 50 threads.
// Workers are simulated, and take nearly nothing.
const (
	memoryPerMachine  = 350 << 20
	diskPerMachine    = 256 << 20
	threadsPerMachine = 60
	filesPerProcess   = 1024 // an API server has some hundred connections and files open
)

// Room is what a computer has left for the user that polderd runs as.
type Room struct {
	Memory  uint64 // bytes that can be had without swapping
	Disk    uint64 // bytes below the data directory
	Threads uint64 // that may still be started
	Files   uint64 // that each process may open
}

// Measure looks at this computer.
func Measure(dataDir string) (Room, error) {
	r := Room{Threads: math.MaxUint64}
	var disk unix.Statfs_t
	if err := unix.Statfs(dataDir, &disk); err != nil {
		return r, fmt.Errorf("looking at the disk of %s: %w", dataDir, err)
	}
	r.Disk = disk.Bavail * uint64(disk.Bsize) //nolint:gosec // never below zero
	var files, threads unix.Rlimit
	err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_NPROC, &threads))
	if err != nil {
		return r, fmt.Errorf("reading the limits of this process: %w", err)
	}
	r.Files = files.Max // Go raises the limit of each process as far as it may
	proc := os.DirFS("/proc")
	if threads.Cur != unix.RLIM_INFINITY && os.Getuid() != 0 { // root has no such limit
		used, err := countThreads(proc, os.Getuid())
		if err != nil {
			return r, err
		}
		r.Threads = threads.Cur - min(threads.Cur, used)
	}
	r.Memory, err = availableMemory(proc, os.DirFS("/sys/fs/cgroup"))
	return r, err
}

// availableMemory is what the kernel says, or what is left of the limit of the container around this process.
func availableMemory(proc, cgroup fs.FS) (uint64, error) {
	fields, err := readFields(proc, "meminfo")
	if err != nil {
		return 0, err
	}
	available := fields["MemAvailable"] << 10
	limit, err := readNumber(cgroup, "memory.max")
	if err != nil {
		return available, nil //nolint:nilerr // there is no limit, or no cgroups of version 2
	}
	used, err := readNumber(cgroup, "memory.current")
	if err != nil {
		return available, nil //nolint:nilerr // as above
	}
	return min(available, limit-min(limit, used)), nil
}

// countThreads counts those of a user. Processes that end meanwhile do not count.
func countThreads(proc fs.FS, uid int) (uint64, error) {
	all, err := fs.Glob(proc, "[0-9]*/status")
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, name := range all {
		if f, err := readFields(proc, name); err == nil && f["Uid"] == uint64(uid) { //nolint:gosec // never below zero
			n += f["Threads"]
		}
	}
	return n, nil
}

// readFields reads lines of a name and numbers, of which it keeps the first.
func readFields(fsys fs.FS, name string) (map[string]uint64, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	fields := map[string]uint64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, rest, _ := strings.Cut(lines.Text(), ":")
		if words := strings.Fields(rest); len(words) > 0 {
			if n, err := strconv.ParseUint(words[0], 10, 64); err == nil {
				fields[key] = n
			}
		}
	}
	return fields, nil
}

func readNumber(fsys fs.FS, name string) (uint64, error) {
	b, err := fs.ReadFile(fsys, path.Clean(name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}

// Check says what is missing for this many machines of a control plane, and what to do about it; nil: nothing is. A
// customer may read it, so it has no paths.
func (r Room) Check(machines int) error {
	n := uint64(max(machines, 1))
	switch {
	case r.Memory < n*memoryPerMachine:
		return fmt.Errorf("this computer has %d MiB of memory left, and the cluster needs about %d MiB; delete clusters or end other programs",
			r.Memory>>20, n*memoryPerMachine>>20)
	case r.Disk < n*diskPerMachine:
		return fmt.Errorf("the disk with polderd's data directory has %d MiB left, and the cluster needs about %d MiB; "+
			"make room there", r.Disk>>20, n*diskPerMachine>>20)
	case r.Threads < n*threadsPerMachine:
		return fmt.Errorf("the user that polderd runs as may start %d more threads, and the cluster needs about %d; raise the limit "+
			"with ulimit -u before polderd is started, or TasksMax= and LimitNPROC= of its unit", r.Threads, n*threadsPerMachine)
	case r.Files < filesPerProcess:
		return fmt.Errorf("a process of polderd may open %d files, and the cluster needs %d; raise the limit with ulimit -Hn "+
			"before polderd is started, or LimitNOFILE= of its unit", r.Files, filesPerProcess)
	}
	return nil
}
