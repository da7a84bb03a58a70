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
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	strace := filepath.Join(moduleRoot(wd), "bin", "strace")
	if _, err := os.Stat(strace); err != nil {
		t.Fatal("bin/strace is not there; run: make bin/strace")
	}
	return exec.Command(strace, append([]string{"-f", "-qq", "-p", strconv.Itoa(p.PID())}, args...)...)
}
