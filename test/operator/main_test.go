// Package operator tests the stack operator from outside, as its users meet it, and the parts of it that
// need a real API server.
package operator

import (
	"os"
	"testing"

	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

// shared serves all tests that do not stop, kill or break their plane.
var shared = testenv.NewShared()

// published is where stacks are published for it.
var published *stackenv.Registry

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	published = stackenv.NewRegistry()
	shared.Flags = []string{"--stack-trust", published.Host()}
	code := shared.Run(m)
	published.Close()
	os.Exit(code)
}
