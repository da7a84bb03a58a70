// Package kubeversion knows which versions of Kubernetes can be run: the built-in one, and the
// minors before it that it can emulate.
package kubeversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// emulated is how many minors before its own Kubernetes can emulate.
const emulated = 3

// Range is what one build can run.
type Range struct {
	BuiltIn *version.Version
	Oldest  uint // minor
	Newest  uint // minor, the built-in one
}

// Of is the range of a build with this version of Kubernetes.
func Of(builtIn string) (Range, error) {
	v, err := version.ParseSemantic(builtIn)
	if err != nil {
		return Range{}, fmt.Errorf("reading the built-in version of Kubernetes: %w", err)
	}
	if v.Minor() < emulated {
		return Range{}, fmt.Errorf("the built-in version of Kubernetes, %q, is not known; build with make build", builtIn)
	}
	return Range{BuiltIn: v, Oldest: v.Minor() - emulated, Newest: v.Minor()}, nil
}

// Emulate is the minor to be emulated for a machine of version v, or empty if it is the built-in
// one. What cannot be run is an error that says what can.
func (r Range) Emulate(v string) (string, error) {
	p, err := version.ParseSemantic(v)
	if err != nil {
		return "", fmt.Errorf("version %q is not a version of Kubernetes such as v%s", v, r.BuiltIn)
	}
	if p.Major() != r.BuiltIn.Major() || p.Minor() < r.Oldest || p.Minor() > r.Newest {
		return "", fmt.Errorf("kubernetes %s cannot be run here; possible are v%d.%d to v%d.%d", v, r.BuiltIn.Major(), r.Oldest, r.BuiltIn.Major(), r.Newest)
	}
	if p.Minor() == r.Newest {
		return "", nil
	}
	return fmt.Sprintf("%d.%d", p.Major(), p.Minor()), nil
}
