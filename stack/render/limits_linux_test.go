package render

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever else may be wrong, a child can open nothing: neither a file nor a connection.
func TestChildOpensNothing(t *testing.T) {
	if os.Getenv("POLDER_TEST_CHILD") == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), exe, "-test.run=^TestChildOpensNothing$")
		c.Env = []string{"POLDER_TEST_CHILD=1"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := DefaultLimits.enforce(); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open("/dev/null"); err == nil {
		t.Error("it opened", f.Name())
	}
	if c, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("it listens on", c.Addr())
	}
}

// The child gets no environment, and runs where there is nothing to find.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("POLDER_CANARY", "canary-value")
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	script := "#!/bin/sh\n{ env; pwd; echo $#; } > " + dir + "/seen\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Renderer{Executable: program}).Render(t.Context(), inputOf(job(map[string]string{"templates/x.yaml": "x"}))); err == nil {
		t.Error("a program that does not render is no error")
	}
	b, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	seen := strings.Fields(string(b))
	if slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "canary") || strings.HasPrefix(s, "HOME=") }) ||
		!slices.Contains(seen, "PWD=/") {
		t.Errorf("%s", b)
	}
}

// The CPU time that the kernel kills by and the one it reports afterwards differ on busy machines.
func TestUsedAllCPU(t *testing.T) {
	l := Limits{CPU: 2 * time.Second}
	for name, c := range map[string]struct {
		used  time.Duration
		ended string
		want  bool
	}{
		"all of it":               {2 * time.Second, "signal: killed", true},
		"nearly all, by itself":   {1950 * time.Millisecond, "exit status 2", true},
		"less, by itself":         {1500 * time.Millisecond, "exit status 2", false},
		"less, by the kernel":     {1500 * time.Millisecond, "signal: killed", true},
		"little, by somebody":     {100 * time.Millisecond, "signal: killed", false},
		"less, by another signal": {1500 * time.Millisecond, "signal: terminated", false},
	} {
		if got := usedAllCPU(c.used, c.ended, l); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What a process writes to stderr when it gets no more memory, and what others write for other reasons.
func TestOutOfMemory(t *testing.T) {
	for words, want := range map[string]bool{
		"fatal error: runtime: cannot allocate memory\n":                                                                      true,
		"runtime: out of memory: cannot allocate 4194304-byte block\n":                                                        true,
		"SIGSEGV: segmentation violation\nPC=0x4 m=3 sigcode=1 addr=0x8\n":                                                    true,
		"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation]\n": false,
		"": false,
	} {
		if got := isOutOfMemory(words); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
}
