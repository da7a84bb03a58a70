package stackstatus

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/version"
)

// reportBuilder makes a report of what was read.
type reportBuilder struct {
	stackObjects
	kubectl       string
	classClusters map[types.NamespacedName][]*clusterv1.Cluster // by class
	clusterAddons map[types.NamespacedName]*csv1.ClusterAddon   // by cluster
	hasRelease    map[*clusterv1.Cluster]bool                   // those whose class is of a release
}

// buildReport says how the selected stacks are. kubectl is how that is called in advice.
func (w stackObjects) buildReport(s stackSelection, kubectl string) stacksReport {
	v := &reportBuilder{stackObjects: w, kubectl: kubectl, classClusters: w.clustersByClass(), clusterAddons: w.addonsByCluster(), hasRelease: map[*clusterv1.Cluster]bool{}}
	r := stacksReport{Stacks: []stackReport{}, Releases: []releaseReport{}, Clusters: []releaseClusterReport{}, Next: []nextStep{}}
	releases := map[*csv1.ClusterStack][]releaseReport{}
	for _, l := range w.sortedReleases() {
		of := w.stackOf(l)
		releases[of] = append(releases[of], v.reportRelease(l, of))
	}
	for _, c := range w.sortedStacks() {
		if s.hasNamespace(c.Namespace) && (s.Name == "" || s.Name == c.Name) {
			r.Stacks = append(r.Stacks, v.reportStack(c, releases[c]))
		}
	}
	if s.Name == "" {
		for _, l := range releases[nil] {
			if s.hasNamespace(l.Namespace) {
				r.Releases = append(r.Releases, l)
			}
		}
		r.Clusters = append(r.Clusters, v.reportClustersWithoutRelease(s)...)
	}
	r.collectNextSteps()
	return r
}

func (v *reportBuilder) reportStack(c *csv1.ClusterStack, releases []releaseReport) stackReport {
	r := stackReport{
		Namespace: c.Namespace, Name: c.Name, Provider: c.Spec.Provider, Stack: c.Spec.Name, Kubernetes: c.Spec.KubernetesVersion,
		Channel: cmp.Or(string(c.Spec.Channel), string(csv1.ChannelStable)), Releases: append([]releaseReport{}, releases...),
	}
	if c.Status.LatestRelease != nil {
		r.LatestRelease = *c.Status.LatestRelease
	}
	s := adviceTarget{kind: "ClusterStack", namespace: c.Namespace, name: c.Name, stack: c}
	s.object = fmt.Sprintf("clusterstack -n %s %s", c.Namespace, c.Name)
	for _, l := range releases {
		s.clusters = append(s.clusters, l.Clusters...)
	}
	r.health = v.evaluateHealth(s, &c.ObjectMeta, c.Status.Conditions)
	return r
}

func (v *reportBuilder) reportRelease(l *csv1.ClusterStackRelease, of *csv1.ClusterStack) releaseReport {
	r := releaseReport{Namespace: l.Namespace, Name: l.Name, Kubernetes: l.Status.KubernetesVersion, Digest: l.Status.Digest, Clusters: []releaseClusterReport{}}
	s := adviceTarget{kind: "ClusterStackRelease", namespace: l.Namespace, name: l.Name, stack: of, class: l.Name}
	s.object = fmt.Sprintf("clusterstackrelease -n %s %s", l.Namespace, l.Name)
	for _, class := range classesOf(l) {
		s.class = class.Name
		for _, c := range v.classClusters[class] {
			v.hasRelease[c] = true
			r.Clusters = append(r.Clusters, v.reportCluster(c, l, of))
		}
	}
	sortClusterReports(r.Clusters)
	s.clusters = r.Clusters
	r.health = v.evaluateHealth(s, &l.ObjectMeta, l.Status.Conditions)
	if r.State == readinessReady && of != nil {
		r.Notes = append(r.Notes, summaryNotes(of, l.Name)...)
	}
	return r
}

// summaryNotes is what a stack has to say of a release that is ready, for example that its source has another
// content by now.
func summaryNotes(s *csv1.ClusterStack, release string) (notes []string) {
	n, err := version.ParseReleaseName(release)
	if err != nil {
		return nil
	}
	for _, r := range s.Status.Summary {
		if v, err := version.Parse(r.Name); err == nil && v == n.Version && r.Message != nil {
			notes = append(notes, *r.Message)
		}
	}
	return notes
}

// reportCluster is a cluster of a release; of none, if that is nil.
func (v *reportBuilder) reportCluster(c *clusterv1.Cluster, l *csv1.ClusterStackRelease, of *csv1.ClusterStack) releaseClusterReport {
	r := releaseClusterReport{Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{}}
	addon := v.clusterAddons[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}]
	if addon != nil {
		r.Stages = append(r.Stages, addon.Status.Stages...)
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		r.health = health{State: readinessDeleting, Message: "it is being deleted"}
		return r
	case addon == nil:
		r.health = health{State: readinessWaiting, Message: "it has no ClusterAddon yet"}
		return r
	}
	s := adviceTarget{kind: "Cluster", namespace: c.Namespace, name: c.Name, stack: of, stage: currentStage(r.Stages)}
	s.object = fmt.Sprintf("clusteraddon -n %s %s", addon.Namespace, addon.Name)
	r.health = v.evaluateHealth(s, &addon.ObjectMeta, addon.Status.Conditions)
	if failed := topologyFailure(c); r.State == readinessReady && failed != nil {
		r.health = health{State: readinessFailed, Reason: failed.Reason, Message: "they are ready, but Cluster API cannot work on the cluster: " + failed.Message}
	}
	// The class of a cluster may have been changed a moment ago, which its add-ons do not know yet.
	if at := addon.Status.Release; l != nil && r.State == readinessReady && at != "" && at != l.Namespace+"/"+l.Name {
		r.health = health{State: readinessWaiting, Message: "they are still those of " + at}
	}
	return r
}

// reportClustersWithoutRelease are clusters whose class is of no release, although they have add-ons, or it is called as if it were
// and is not there.
func (v *reportBuilder) reportClustersWithoutRelease(s stackSelection) (these []releaseClusterReport) {
	for i := range v.clusters {
		c := &v.clusters[i]
		if !s.hasNamespace(c.Namespace) || v.hasRelease[c] {
			continue
		}
		class := c.Spec.Topology.ClassRef
		if v.clusterAddons[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] != nil {
			these = append(these, v.reportCluster(c, nil, nil))
		} else if _, err := version.ParseReleaseName(class.Name); err == nil && c.DeletionTimestamp.IsZero() && topologyFailure(c) != nil {
			these = append(these, v.reportMissingClass(c, cmp.Or(class.Namespace, c.Namespace)+"/"+class.Name))
		}
	}
	sortClusterReports(these)
	return these
}

// topologyFailure is what Cluster API says if it cannot make of a cluster what its class wants.
func topologyFailure(c *clusterv1.Cluster) *metav1.Condition {
	cond := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if cond == nil || cond.Status != metav1.ConditionFalse || cond.Reason != clusterv1.ClusterTopologyReconciledFailedReason {
		return nil
	}
	return cond
}

// reportMissingClass is a cluster that waits for a class which no release has.
func (v *reportBuilder) reportMissingClass(c *clusterv1.Cluster, class string) releaseClusterReport {
	r := releaseClusterReport{Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{}}
	r.health = health{State: readinessFailed, Reason: csv1.ReasonNotFromRelease, Message: "no release has its class " + class}
	r.steps = append(r.steps, adviceTarget{kind: "Cluster", namespace: c.Namespace, name: c.Name}.nextStepFor(r.Reason, v.kubectl))
	return r
}

func (v *reportBuilder) evaluateHealth(s adviceTarget, o *metav1.ObjectMeta, conditions []metav1.Condition) health {
	h, reasons := evaluateConditions(o, conditions)
	for _, reason := range reasons {
		h.steps = append(h.steps, s.nextStepFor(reason, v.kubectl))
	}
	return h
}

// currentStage is the first that is not done.
func currentStage(stages []csv1.StageStatus) string {
	i := slices.IndexFunc(stages, func(s csv1.StageStatus) bool { return s.Phase != csv1.StageDone })
	if i < 0 {
		return ""
	}
	return stages[i].Name
}
