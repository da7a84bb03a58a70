// Package kubeversion knows which versions of Kubernetes can be run: the built-in one, and the
// minors before it that it can emulate.
package kubeversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// maxEmulatedMinors is how many minors before its own Kubernetes can emulate.
const maxEmulatedMinors = 3

// Range is what one build can run.
type Range struct {
	BuiltIn     *version.Version
	OldestMinor uint // the oldest that can be emulated
	NewestMinor uint // the built-in one
}

// NewRange is what a build with this version of Kubernetes can run.
func NewRange(builtIn string) (Range, error) {
	v, err := version.ParseSemantic(builtIn)
	if err != nil {
		return Range{}, fmt.Errorf("reading the built-in version of Kubernetes: %w", err)
	}
	if v.Minor() < maxEmulatedMinors {
		return Range{}, fmt.Errorf("the built-in version of Kubernetes, %q, is not known; build with make build", builtIn)
	}
	return Range{BuiltIn: v, OldestMinor: v.Minor() - maxEmulatedMinors, NewestMinor: v.Minor()}, nil
}

// EmulatedVersion is the minor to be emulated for a machine of version v, or empty if it is the built-in
// one. What cannot be run is an error that says what can.
func (r Range) EmulatedVersion(v string) (string, error) {
	p, err := version.ParseSemantic(v)
	if err != nil {
		return "", fmt.Errorf("version %q is not a version of Kubernetes such as v%s", v, r.BuiltIn)
	}
	if p.Major() != r.BuiltIn.Major() || p.Minor() < r.OldestMinor || p.Minor() > r.NewestMinor {
		return "", fmt.Errorf("kubernetes %s cannot be run here; possible are v%d.%d to v%d.%d", v, r.BuiltIn.Major(),
			r.OldestMinor, r.BuiltIn.Major(), r.NewestMinor)
	}
	if p.Minor() == r.NewestMinor {
		return "", nil
	}
	return fmt.Sprintf("%d.%d", p.Major(), p.Minor()), nil
}
