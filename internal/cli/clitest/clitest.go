// Package clitest runs commands of polder in tests.
package clitest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Polder runs commands on a data directory.
type Polder struct {
	*testing.T
	Dir     string                // the data directory
	Command func() *cobra.Command // makes a root for each run
}

// New has a data directory of its own, which ends with the test; command makes the root that it runs.
func New(t *testing.T, command func() *cobra.Command) Polder {
	t.Helper()
	return Polder{T: t, Dir: t.TempDir(), Command: command}
}

// Execute runs a command, and gives what it said and its exit code. What is left to say of its error is a part of
// stderr.
func (p Polder) Execute(args ...string) (stdout, stderr string, code int) {
	p.Helper()
	var out, errs bytes.Buffer
	c := p.Command()
	c.SetArgs(append([]string{"--data-dir", p.Dir}, args...))
	c.SetOut(&out)
	c.SetErr(&errs)
	err := c.ExecuteContext(p.Context())
	return out.String(), errs.String() + output.Message(err), exit.Code(err)
}

// Expect runs a command and compares everything it says with what is wanted, in which DIR stands for the data
// directory.
func (p Polder) Expect(code int, stdout, stderr string, args ...string) {
	p.Helper()
	fill := strings.NewReplacer("DIR", p.Dir)
	out, errs, got := p.Execute(args...)
	if got != code || out != fill.Replace(stdout) || errs != fill.Replace(stderr) {
		p.Errorf("polder %s ends with %d, want %d\nstdout (-want +got):\n%s\nstderr (-want +got):\n%s",
			strings.Join(args, " "), got, code,
			cmp.Diff(fill.Replace(stdout), out), cmp.Diff(fill.Replace(stderr), errs))
	}
}

// WriteFile also makes the directories that the file needs.
func (p Polder) WriteFile(file, text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// WriteKubeconfig makes the data directory that of a plane at an address; namespace is the one of its context.
func (p Polder) WriteKubeconfig(server, namespace string) {
	p.Helper()
	p.WriteFile(filepath.Join(p.Dir, "admin.kubeconfig"),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","namespace":%q}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, namespace, server))
}
