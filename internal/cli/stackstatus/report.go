package stackstatus

import (
	"slices"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// report is what `polder stack status` prints.
type report struct {
	Ready  bool          `json:"ready"` // there is something, and all of it is ready
	Stacks []stackReport `json:"stacks"`
	// What belongs to no stack is only there if no stack is named.
	Releases []releaseReport        `json:"releasesWithoutStack"`
	Clusters []releaseClusterReport `json:"clustersWithoutRelease"`
	Next     []nextStep             `json:"next"`
}

// stackReport is one ClusterStack.
type stackReport struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Provider   string `json:"provider"`
	Stack      string `json:"stack"`
	Kubernetes string `json:"kubernetes"` // the minor
	Channel    string `json:"channel"`
	health
	LatestRelease string          `json:"latestRelease,omitempty"` // as the object has it
	Releases      []releaseReport `json:"releases"`
}

// releaseReport is one ClusterStackRelease.
type releaseReport struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Kubernetes string `json:"kubernetes,omitempty"`
	Digest     string `json:"digest,omitempty"`
	health
	Clusters []releaseClusterReport `json:"clusters"`
}

// releaseClusterReport is a Cluster that uses a release. Its health is that of its add-ons.
type releaseClusterReport struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Kubernetes string `json:"kubernetes,omitempty"`
	health
	Stages []csv1.StageStatus `json:"stages"`
}

// isEmpty says that nothing fits the selection.
func (r *report) isEmpty() bool { return len(r.Stacks)+len(r.Releases)+len(r.Clusters) == 0 }

// collectNextSteps gathers what is to do, each step once, from the top of the tree to its leaves.
func (r *report) collectNextSteps() {
	r.Ready = !r.isEmpty()
	see := func(h health) {
		r.Ready = r.Ready && h.State == readinessReady
		for _, n := range h.steps {
			if !slices.Contains(r.Next, n) {
				r.Next = append(r.Next, n)
			}
		}
	}
	seeClusters := func(all []releaseClusterReport) {
		for _, c := range all {
			see(c.health)
		}
	}
	seeReleases := func(all []releaseReport) {
		for _, l := range all {
			see(l.health)
			seeClusters(l.Clusters)
		}
	}
	for _, s := range r.Stacks {
		see(s.health)
		seeReleases(s.Releases)
	}
	seeReleases(r.Releases)
	seeClusters(r.Clusters)
}
