package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Strace prepares a strace of a running polderd and all its threads and children, with these arguments beside. It ends with the
// process it looks at.
func (p *Plane) Strace(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(Tool(t, "strace"), append([]string{"-f", "-qq", "-p", strconv.Itoa(p.PID())}, args...)...)
}

// Tool is the path of a program that the Makefile brings for tests.
func Tool(t testing.TB, name string) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(moduleRoot(wd), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("bin/%s is not there; run: make bin/%s", name, name)
	}
	return path
}
