package lineage

import (
	"fmt"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/stack/version"
)

// CheckUpgrade says why Kubernetes cannot go from one version to another, with the reason for a condition. Both are ""
// if it can.
func CheckUpgrade(from, to string) (why, reason string) {
	a, err := version.ParseKubernetes(from)
	b, err2 := version.ParseKubernetes(to)
	if err != nil || err2 != nil {
		return "", "" // a version that cannot be read is reported elsewhere
	}
	switch {
	case b.Major == a.Major && b.Minor > a.Minor+1:
		return fmt.Sprintf("Kubernetes is raised by one minor at a time, and from %s to %s is more", a,
			b), v1alpha1.ReasonVersionSkips
	case version.CompareKubernetes(b, a) < 0 && (b.HasPatch() || !a.SameMinor(b)):
		return fmt.Sprintf("Kubernetes is never lowered, and the cluster has %s already", a), v1alpha1.ReasonVersionLower
	}
	return "", ""
}
