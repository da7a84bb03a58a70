package lineage

import (
	"slices"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/stack/version"
)

// Updates returns what a cluster at a release could be changed to: newer releases of its minor, and the newest of the
// next one. Only releases that are ready count, and none that would lower Kubernetes.
func (c *Catalogue) Updates(provider string, ref v1alpha1.StackReference, at CatalogueEntry) []v1alpha1.Update {
	var same, next []v1alpha1.Update
	for _, l := range c.findStacks(provider, ref.Name) {
		steps := l.minor.Minor - at.Kubernetes.Minor
		if l.minor.Major != at.Kubernetes.Major || steps < 0 || steps > 1 {
			continue
		}
		for _, r := range l.releases {
			if !r.IsReady() || !matchesChannel(ref.Channel, r) || lowersKubernetes(at, r) {
				continue
			}
			u := v1alpha1.Update{
				KubernetesVersion: l.minor.MinorString(), Version: r.Version.String(),
				Kubernetes: r.Object.Status.KubernetesVersion,
			}
			switch {
			case steps == 1 && len(next) == 0:
				next = append(next, u)
			case steps == 0 && version.Compare(r.Version, at.Version) > 0 && !slices.Contains(same, u):
				same = append(same, u)
			}
		}
	}
	return limitUpdates(append(same, next...))
}

// lowersKubernetes reports whether the release to has an older Kubernetes than from.
func lowersKubernetes(from, to CatalogueEntry) bool {
	a, err := version.ParseKubernetes(from.Object.Status.KubernetesVersion)
	b, err2 := version.ParseKubernetes(to.Object.Status.KubernetesVersion)
	return err == nil && err2 == nil && version.CompareKubernetes(b, a) < 0
}

// maxUpdates is how many updates a status lists.
const maxUpdates = 16

// limitUpdates drops the oldest releases of the cluster's minor. The last entry stays: it is the next minor, if there
// is one.
func limitUpdates(all []v1alpha1.Update) []v1alpha1.Update {
	if len(all) > maxUpdates {
		return append(all[:maxUpdates-1:maxUpdates-1], all[len(all)-1])
	}
	return all
}
