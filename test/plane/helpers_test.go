package plane

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	"github.com/polder-kaas/polder/test/testenv"
)

// polder runs the command line as a user would and returns all it prints.
func polder(t *testing.T, tree testenv.Tree, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := tree.Command("polder", args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

func decode(b []byte, into any) error { return json.Unmarshal(b, into) }

// exitCode is the code a finished command ended with.
func exitCode(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	return -1
}
