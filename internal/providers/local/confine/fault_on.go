//go:build fault

package confine

import (
	"os"
	"slices"
	"strings"
)

const offPrefix = "POLDER_OFF_"

// isOff says that confinement is switched off, so that tests see what the other guards do alone.
func isOff() bool { return os.Getenv(offPrefix+"CONFINEMENT") != "" } //nolint:forbidigo // for tests

// Environment is what a process must hand on to what it starts: all that is switched off.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, offPrefix) })
}
