// Package testenv runs the built binaries for tests, as an ordinary user, so that no test
// package links Kubernetes and none needs to be root. `make build` makes the binaries.
package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unprivilegedUID is the user binaries run as when the tests themselves run as root. It needs no entry in the user
// database.
const unprivilegedUID = 61234

// Tree is where a test keeps its programs and data. It belongs to the user the programs run
// as, its path is short, since it will hold unix sockets, and it is gone after the test.
type Tree struct {
	Root string
	Bin  string // polder and polderd
	Home string
}

// NewTree makes a tree with the programs as `make build` left them. With fault, its polderd is
// the one whose components can be made to fail.
func NewTree(t testing.TB, fault bool) Tree {
	t.Helper()
	tree, err := makeTree(fault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.remove(); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return tree
}

// remove deletes all of it. Planes of tenants, which end a moment after the one that runs them, may still write.
func (tree Tree) remove() (err error) {
	for range 100 {
		if err = errors.Join(os.RemoveAll(tree.Root), os.RemoveAll(tree.Bin)); err == nil {
			return nil
		}
		<-time.After(100 * time.Millisecond)
	}
	return err
}

func makeTree(fault bool) (Tree, error) {
	root, err := os.MkdirTemp(dataParent(), "polder-")
	if err != nil {
		return Tree{}, err
	}
	bin, err := os.MkdirTemp("", "polder-bin-") // on the file system of the checkout, most likely, where a link will do
	if err != nil {
		return Tree{}, errors.Join(err, os.RemoveAll(root))
	}
	tree := Tree{Root: root, Bin: bin, Home: filepath.Join(root, "home")}
	daemon := "polderd"
	if fault {
		daemon = "polderd-fault"
	}
	err = errors.Join(
		chown(root), os.Chmod(bin, 0o755), chown(bin), os.Mkdir(tree.Home, 0o755), chown(tree.Home),
		installProgram("polder", filepath.Join(tree.Bin, "polder")), installProgram(daemon, filepath.Join(tree.Bin, "polderd")),
	)
	if err != nil {
		return tree, errors.Join(err, tree.remove())
	}
	return tree, nil
}

// dataParent is where data of tests goes: in memory where there is plenty of it. The disk of a shared machine takes
// seconds for a sync at times, which is its neighbours' doing and says nothing about ours.
func dataParent() string {
	const memory, plenty = "/dev/shm", 8 << 30
	var s unix.Statfs_t
	if unix.Statfs(memory, &s) != nil || unix.Access(memory, unix.W_OK) != nil {
		return ""
	}
	if room := s.Bavail * uint64(s.Bsize); room < plenty || availableMemory() < plenty {
		return ""
	}
	return memory
}

func availableMemory() uint64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// chown gives a file to the user the programs run as.
func chown(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, unprivilegedUID, unprivilegedUID)
}

// InstallDaemon makes polderd of the tree the one in bin of the checkout that name says. One that runs goes on as it is.
func (tree Tree) InstallDaemon(t testing.TB, name string) {
	t.Helper()
	next := filepath.Join(tree.Bin, "polderd.next")
	if err := installProgram(name, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(tree.Bin, "polderd")); err != nil {
		t.Fatal(err)
	}
}

// installProgram puts a built program where the unprivileged user can reach it, wherever the checkout is.
func installProgram(name, to string) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	from := filepath.Join(moduleRoot(wd), "bin", name)
	if _, err := os.Stat(from); err != nil {
		return errors.New("bin/" + name + " is not built; run: make build bin/polderd-fault, or, for faults, make bin/previous/polderd")
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to) // another file system
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// moduleRoot is the nearest directory above dir with a go.mod.
func moduleRoot(dir string) string {
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
	}
	return dir
}

// Command is a program of the tree, to be run as the unprivileged user with a clean environment. It is killed with the
// test process, if it has not ended by itself.
func (tree Tree) Command(program string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(tree.Bin, program), args...)
	c.Env = []string{"HOME=" + tree.Home, "PATH=/usr/bin:/bin", "GOGC=400"} // memory is not what tests are about: collecting less saves a fifth of their time
	c.Dir = tree.Root
	c.SysProcAttr = unprivilegedAttr()
	return c
}

func unprivilegedAttr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		a.Credential = &syscall.Credential{Uid: unprivilegedUID, Gid: unprivilegedUID, NoSetGroups: false}
	}
	return a
}

// Eventually calls ask until it returns nil, and fails the test with the last error if that does not happen in time.
func Eventually(t testing.TB, timeout time.Duration, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", timeout, err)
		}
		time.Sleep(50 * time.Millisecond) // the one place that sleeps
	}
}

// Chown gives a file to the user the programs run as.
func Chown(t testing.TB, path string) {
	t.Helper()
	if err := chown(path); err != nil {
		t.Fatal(err)
	}
}
