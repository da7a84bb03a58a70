package stack_test

import (
	"os"
	"testing"

	"github.com/polder-kaas/polder/stack/render"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
