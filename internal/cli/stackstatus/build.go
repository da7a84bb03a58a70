package stackstatus

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage/advice"
	"github.com/polder-kaas/polder/stack/version"
)

// reportBuilder makes a report of what was read.
type reportBuilder struct {
	objectSet
	kubectl       string
	classClusters map[types.NamespacedName][]*clusterv1.Cluster // by class
	clusterAddons map[types.NamespacedName]*csv1.ClusterAddon   // by cluster
	hasRelease    map[*clusterv1.Cluster]bool                   // those whose class is of a release
}

// buildReport says how the selected stacks are. kubectl is how that is called in advice.
func (w objectSet) buildReport(s selection, kubectl string) report {
	v := &reportBuilder{
		objectSet: w, kubectl: kubectl, classClusters: w.clustersByClass(), clusterAddons: w.addonsByCluster(),
		hasRelease: map[*clusterv1.Cluster]bool{},
	}
	r := report{
		Stacks: []stackReport{}, Releases: []releaseReport{}, Clusters: []releaseClusterReport{}, Next: []nextStep{},
	}
	// All releases, selected or not: whose clusters have a release is known only then.
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
	// What belongs to no stack is not what somebody asks for who names one.
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

// reportStack has the users of all releases, since advice depends on whether there are any.
func (v *reportBuilder) reportStack(c *csv1.ClusterStack, releases []releaseReport) stackReport {
	r := stackReport{
		Namespace: c.Namespace, Name: c.Name, Provider: c.Spec.Provider, Stack: c.Spec.Name,
		Kubernetes: c.Spec.KubernetesVersion,
		Channel:    cmp.Or(string(c.Spec.Channel), string(csv1.ChannelStable)),
		Releases:   append([]releaseReport{}, releases...),
	}
	if c.Status.LatestRelease != nil {
		r.LatestRelease = *c.Status.LatestRelease
	}
	about := advice.Object{Kind: "ClusterStack", Meta: &c.ObjectMeta, Stack: c, Conditions: c.Status.Conditions}
	for _, l := range releases {
		for _, user := range l.Clusters {
			about.Clusters = append(about.Clusters, user.Namespace+"/"+user.Name)
		}
	}
	r.health = v.evaluateHealth(about, c.Status.Actor, c.Status.NextStep)
	return r
}

// reportRelease finds users by class: clusters do not name the release they are of.
func (v *reportBuilder) reportRelease(l *csv1.ClusterStackRelease, of *csv1.ClusterStack) releaseReport {
	r := releaseReport{
		Namespace: l.Namespace, Name: l.Name, Kubernetes: l.Status.KubernetesVersion, Digest: l.Status.Digest,
		Clusters: []releaseClusterReport{},
	}
	about := advice.Object{
		Kind: "ClusterStackRelease", Meta: &l.ObjectMeta, Class: l.Name, Stack: of, Conditions: l.Status.Conditions,
	}
	for _, class := range classesOf(l) {
		about.Class = class.Name
		for _, c := range v.classClusters[class] {
			v.hasRelease[c] = true
			r.Clusters = append(r.Clusters, v.reportCluster(c, l, of))
		}
	}
	sortClusterReports(r.Clusters)
	for _, c := range r.Clusters {
		about.Clusters = append(about.Clusters, c.Namespace+"/"+c.Name)
	}
	r.health = v.evaluateHealth(about, l.Status.Actor, l.Status.NextStep)
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
func (v *reportBuilder) reportCluster(c *clusterv1.Cluster, l *csv1.ClusterStackRelease,
	of *csv1.ClusterStack) releaseClusterReport {
	r := releaseClusterReport{
		Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{},
	}
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
	about := advice.Object{
		Kind: "ClusterAddon", Meta: &addon.ObjectMeta, Cluster: c.Name, Stage: advice.CurrentStage(r.Stages), Stack: of,
		Conditions: addon.Status.Conditions,
	}
	r.health = v.evaluateHealth(about, addon.Status.Actor, addon.Status.NextStep)
	if failed := topologyFailure(c); r.State == readinessReady && failed != nil {
		r.health = health{
			State: readinessFailed, Reason: failed.Reason,
			Message: "they are ready, but Cluster API cannot work on the cluster: " + failed.Message,
		}
	}
	// The class of a cluster may have been changed a moment ago, which its add-ons do not know yet.
	if at := addon.Status.Release; l != nil && r.State == readinessReady && at != "" && at != l.Namespace+"/"+l.Name {
		r.health = health{State: readinessWaiting, Message: "they are still those of " + at}
	}
	return r
}

// reportClustersWithoutRelease are clusters whose class is of no release, although they have add-ons, or it is called
// as if it were and is not there.
func (v *reportBuilder) reportClustersWithoutRelease(s selection) (these []releaseClusterReport) {
	for i := range v.clusters {
		c := &v.clusters[i]
		if !s.hasNamespace(c.Namespace) || v.hasRelease[c] {
			continue
		}
		class := c.Spec.Topology.ClassRef
		if v.clusterAddons[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] != nil {
			these = append(these, v.reportCluster(c, nil, nil))
		} else if _, err := version.ParseReleaseName(class.Name); err == nil && c.DeletionTimestamp.IsZero() &&
			topologyFailure(c) != nil {
			these = append(these, v.reportMissingClass(c, cmp.Or(class.Namespace, c.Namespace)+"/"+class.Name))
		}
	}
	sortClusterReports(these)
	return these
}

// topologyFailure is what Cluster API says if it cannot make of a cluster what its class wants.
func topologyFailure(c *clusterv1.Cluster) *metav1.Condition {
	cond := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if cond == nil || cond.Status != metav1.ConditionFalse ||
		cond.Reason != clusterv1.ClusterTopologyReconciledFailedReason {
		return nil
	}
	return cond
}

// reportMissingClass is a cluster that waits for a class which no release has.
func (v *reportBuilder) reportMissingClass(c *clusterv1.Cluster, class string) releaseClusterReport {
	r := releaseClusterReport{
		Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{},
	}
	r.health = health{
		State: readinessFailed, Reason: csv1.ReasonNotFromRelease, Message: "no release has its class " + class,
	}
	about := advice.Object{Kind: "Cluster", Meta: &c.ObjectMeta}
	actor, action := advice.ForReason(about, r.Reason)
	r.steps = append(r.steps, newNextStep(about, r.Reason, actor, action, v.kubectl))
	return r
}

// evaluateHealth says how an object is, with what its status says is to be done about it.
func (v *reportBuilder) evaluateHealth(about advice.Object, actor csv1.Actor, action string) health {
	h, reason := evaluateConditions(about.Meta, about.Conditions), advice.Reason(about)
	if actor == "" { // a plane of before there was advice in status
		actor, action = advice.For(about)
	}
	// What is to be done about a release, or about the source of a stack, is listed with that.
	listed := advice.IsOfRelease(reason) || advice.IsOfSource(reason) && about.Kind != "ClusterStack" &&
		hasSourceStep(about.Stack)
	if reason != "" && action != "" && !listed {
		h.steps = append(h.steps, newNextStep(about, reason, actor, action, v.kubectl))
	}
	return h
}

// hasSourceStep reports whether a stack itself says what is to be done about its source. It does not if it could list
// the source, and only the content of a release cannot be had.
func hasSourceStep(s *csv1.ClusterStack) bool {
	return s != nil && advice.IsOfSource(advice.Reason(advice.Object{
		Meta: &s.ObjectMeta, Conditions: s.Status.Conditions,
	}))
}
