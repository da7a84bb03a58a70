package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const unified = `24 1 0:22 / /proc rw - proc proc rw
25 1 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
`

func TestLocateParent(t *testing.T) {
	const hybrid = "30 1 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	tests := map[string]struct{ own, mounts, want, err string }{
		"a subgroup of a unit":    {own: "0::/system.slice/polderd.service/polderd\n", mounts: unified, want: "/sys/fs/cgroup/system.slice/polderd.service"},
		"a unit":                  {own: "0::/polderd.service\n", mounts: unified, err: "no cgroup of its own"},
		"beside version 1":        {own: "4:memory:/x\n0::/a/b\n", mounts: hybrid, want: "/sys/fs/cgroup/unified/a"},
		"version 1 alone":         {own: "4:memory:/x/y\n", mounts: hybrid, err: "version 2"},
		"the root":                {own: "0::/\n", mounts: unified, err: "no cgroup of its own"},
		"outside of what is seen": {own: "0::/../../a/b\n", mounts: unified, err: "no cgroup of its own"},
		"not mounted":             {own: "0::/a/b\n", mounts: "24 1 0:22 / /proc rw - proc proc rw\n", err: "no cgroup of its own"},
		"part of it is mounted":   {own: "0::/pod/a/b\n", mounts: "25 1 0:23 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", want: "/sys/fs/cgroup/a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := locateParent(tc.own, tc.mounts)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// parentForTest has the files that the kernel would make, as plain ones.
func parentForTest(t *testing.T, controllers string) *Parent {
	t.Helper()
	p := &Parent{dir: t.TempDir(), memory: 4 << 30}
	for name, content := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": ""} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestEnableControllers(t *testing.T) {
	for offered, want := range map[string]string{"cpu memory pids\n": "+memory +pids", "pids\n": "+pids", "cpu hugetlb\n": ""} {
		p := parentForTest(t, offered)
		if err := p.enableControllers(); (err == nil) != (want != "") {
			t.Errorf("%q: %v", offered, err)
		}
		if b, _ := os.ReadFile(filepath.Join(p.dir, "cgroup.subtree_control")); string(b) != want {
			t.Errorf("%q: %q is enabled", offered, b)
		}
	}
}

func TestAssign(t *testing.T) {
	p := parentForTest(t, "memory pids")
	p.controllers = []string{"memory", "pids"}
	for _, dir := range []string{"gone", "here"} {
		if err := os.Mkdir(filepath.Join(p.dir, prefix+dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"memory.max": "max", "pids.max": "max"} // no swap here
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.dir, prefix+"here", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &exec.Cmd{}
	release, err := p.Assign(c, "here")
	if err != nil {
		t.Fatal(err)
	}
	if link, _ := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(c.SysProcAttr.CgroupFD))); !c.SysProcAttr.UseCgroupFD || link != filepath.Join(p.dir, prefix+"here") {
		t.Errorf("it would start in %q", link)
	}
	release()
	got := map[string]string{}
	for name := range files {
		b, _ := os.ReadFile(filepath.Join(p.dir, prefix+"here", name))
		got[name] = strings.TrimRight(string(b), "\x00")
	}
	if diff := cmp.Diff(map[string]string{"memory.max": "2147483648", "pids.max": "8192"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(p.dir, prefix+"gone")); err == nil {
		t.Error("the cgroup of a cluster that is gone was not removed")
	}
	if _, err := p.Assign(&exec.Cmd{}, "new"); err == nil {
		t.Error("limits that cannot be set are no error") // here the kernel makes no files
	}
}
