// Package customer tests what customers meet: one small file, the command line, and what becomes of both.
package customer

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

var update = flag.Bool("update", false, "write golden files anew")

const (
	soon    = 4 * time.Minute
	create  = 8 * time.Minute
	upgrade = 12 * time.Minute
)

// shared serves all tests. It offers the stacks in the binary, and lets the example of a provider run beside it.
var shared = testenv.NewShared()

// published is where tests publish stacks of their own.
var published *stackenv.Registry

func TestMain(m *testing.M) {
	flag.Parse()
	published = stackenv.NewRegistry()
	shared.OfferShipped, shared.ExtraPrograms = true, []string{"example-provider"}
	shared.Flags = []string{"--stack-trust", published.Host()}
	code := shared.Run(m)
	published.Close()
	os.Exit(code)
}

// cli is a customer at the command line.
type cli struct {
	t  *testing.T
	p  *testenv.Plane
	ns string
}

// answer is the output and the exit code of a command.
type answer struct {
	out, err string
	code     int
}

// command is one of polder, in the customer's namespace.
func (c *cli) command(args ...string) *exec.Cmd {
	all := append([]string{"--kubeconfig", filepath.Join(c.p.Data, "admin.kubeconfig")}, args...)
	return c.p.Tree.Command("polder", append(all, "-n", c.ns)...)
}

// run runs a command to its end.
func (c *cli) run(stdin string, args ...string) answer {
	c.t.Helper()
	cmd := c.command(args...)
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &err
	a := answer{}
	var ended *exec.ExitError
	if e := cmd.Run(); errors.As(e, &ended) {
		a.code = ended.ExitCode()
	} else if e != nil {
		c.t.Fatal(e)
	}
	a.out, a.err = out.String(), err.String()
	return a
}

// does runs a command that must succeed, and returns what it printed.
func (c *cli) does(stdin string, args ...string) string {
	c.t.Helper()
	a := c.run(stdin, args...)
	if a.code != 0 {
		c.t.Fatalf("polder %s: exit code %d\n%s%s", strings.Join(args, " "), a.code, a.out, a.err)
	}
	return a.out
}

// fails runs a command that must end with this code and print these words.
func (c *cli) fails(code int, words string, stdin string, args ...string) answer {
	c.t.Helper()
	a := c.run(stdin, args...)
	if a.code != code || !strings.Contains(a.err+a.out, words) {
		c.t.Errorf("polder %s: exit code %d, want %d and %q\n%s%s", strings.Join(args, " "), a.code, code, words, a.out, a.err)
	}
	return a
}
