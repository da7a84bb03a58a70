// Package plane tests the built polderd from outside, as its users meet it.
package plane

import (
	"os"
	"testing"

	"github.com/polder-kaas/polder/test/testenv"
)

// shared serves all tests that do not stop, kill or break their plane.
var shared = testenv.NewShared()

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
