// Package cgroup bounds what all processes of a local cluster take together, where a cgroup is delegated to polderd.
// Limits of single processes (package confine) hold everywhere.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// prefix is what the names of the cgroups of clusters begin with.
const prefix = "polder-local-"

// Limits of a cluster. Memory is half of what the computer has, if that is less.
const (
	maxMemory    = 8 << 30
	maxProcesses = 8192
)

// Parent is a cgroup in which each cluster gets one of its own.
type Parent struct {
	dir         string
	controllers []string
	memory      uint64 // bytes that the computer has

	mu sync.Mutex // held from the creation of a cgroup until there is a process in it
}

// Controllers are those that bound a cluster, as the kernel names them.
func (p *Parent) Controllers() string { return strings.Join(p.controllers, " ") }

// Find returns the cgroup above that of this process, if it was delegated. This process's own cannot be taken: one that
// has processes hands out no controllers to those below it, and moving this process would keep systemd from starting
// the unit again while clusters run. With DelegateSubgroup, systemd makes both.
func Find() (*Parent, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	dir, err := locateParent(string(own), string(mounts))
	if err != nil {
		return nil, err
	}
	if !isDelegated(dir) {
		return nil, fmt.Errorf("%s is not delegated to polderd", dir)
	}
	p := &Parent{dir: dir, memory: totalMemory()}
	return p, p.enableControllers()
}

// locateParent finds the directory of the cgroup above this process's.
func locateParent(own, mounts string) (string, error) {
	mount, root := findMount(mounts)
	for line := range strings.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue // of a hierarchy of version 1
		}
		below, err := filepath.Rel(root, path)
		outside := strings.HasPrefix(path, "/..") // as the kernel says of a cgroup that this process cannot see
		if mount == "" || outside || err != nil || !filepath.IsLocal(below) || below == "." || filepath.Dir(below) == "." {
			return "", errors.New("this process has no cgroup of its own below one of its unit")
		}
		return filepath.Join(mount, filepath.Dir(below)), nil
	}
	return "", errors.New("there are no cgroups of version 2")
}

// findMount returns where cgroups of version 2 are mounted, and which of them is at the root of that.
func findMount(mounts string) (mount, root string) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before) // id, parent, device, root, mount point, …
		if ok && len(f) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			return f[4], f[3]
		}
	}
	return "", ""
}

// isDelegated says whether systemd has delegated the cgroup to this process's user: by its owner, or, for root, who may
// write everywhere, by the mark that systemd sets.
func isDelegated(dir string) bool {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil || int(stat.Uid) != os.Geteuid() {
		return false
	}
	if stat.Uid != 0 {
		return true
	}
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// enableControllers gives the cgroups below this one the controllers that are used and delegated.
func (p *Parent) enableControllers() error {
	b, err := os.ReadFile(filepath.Join(p.dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	have := strings.Fields(string(b))
	var enable []string
	for _, c := range []string{"memory", "pids"} {
		if slices.Contains(have, c) {
			p.controllers, enable = append(p.controllers, c), append(enable, "+"+c)
		}
	}
	if len(enable) == 0 {
		return fmt.Errorf("neither memory nor pids is delegated in %s", p.dir)
	}
	return writeFile(filepath.Join(p.dir, "cgroup.subtree_control"), strings.Join(enable, " "))
}

// Assign makes a command one that starts its process in the cgroup of the cluster with that name. release is to be
// called when it was started. Empty cgroups, of clusters that are gone, are removed.
func (p *Parent) Assign(c *exec.Cmd, name string) (release func(), err error) {
	p.mu.Lock()
	p.removeEmpty()
	dir, err := p.open(name)
	if err != nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("bounding the cluster's processes: %w", err)
	}
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return func() {
		_ = dir.Close() // it was only read
		p.mu.Unlock()
	}, nil
}

// open makes a cgroup with limits.
func (p *Parent) open(name string) (*os.File, error) {
	dir := filepath.Join(p.dir, prefix+name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for file, limit := range p.limits() {
		if err := writeFile(filepath.Join(dir, file), limit); err != nil {
			return nil, err
		}
	}
	return os.Open(dir)
}

// limits are the files of a cgroup and what is written to them. Swap is none: a cluster that has reached its limit
// would slow down the whole computer.
func (p *Parent) limits() map[string]string {
	all := map[string]string{}
	if slices.Contains(p.controllers, "memory") {
		all["memory.max"] = strconv.FormatUint(min(maxMemory, p.memory/2), 10)
		all["memory.swap.max"] = "0"
	}
	if slices.Contains(p.controllers, "pids") {
		all["pids.max"] = strconv.Itoa(maxProcesses)
	}
	return all
}

// removeEmpty removes cgroups without processes; the kernel refuses to remove others.
func (p *Parent) removeEmpty() {
	dirs, _ := filepath.Glob(filepath.Join(p.dir, prefix+"*")) // the pattern is a good one
	for _, d := range dirs {
		_ = unix.Rmdir(d)
	}
}

// writeFile writes to a file that the kernel has made, in one write. memory.swap.max is not there without swap.
func writeFile(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == "memory.swap.max" {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// totalMemory is what the computer has, or more than any limit if that is not known.
func totalMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 2 * maxMemory
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // of another type on other processors
}

// IsBounded says whether this process is in the cgroup of a cluster.
func IsBounded() bool {
	own, err := os.ReadFile("/proc/self/cgroup")
	return err == nil && strings.Contains(string(own), "/"+prefix)
}
