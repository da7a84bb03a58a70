package cli

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

// survey makes a report of what was read.
type survey struct {
	stackWorld
	kubectl string
	users   map[types.NamespacedName][]*clusterv1.Cluster // by class
	addonOf map[types.NamespacedName]*csv1.ClusterAddon   // by cluster
	inPlace map[*clusterv1.Cluster]bool                   // those whose class is of a release
}

// report says how the selected stacks are. kubectl is how that is called in advice.
func (w stackWorld) report(s selection, kubectl string) stacksReport {
	v := &survey{stackWorld: w, kubectl: kubectl, users: w.users(), addonOf: w.addonsByCluster(), inPlace: map[*clusterv1.Cluster]bool{}}
	r := stacksReport{Stacks: []stackReport{}, Releases: []releaseReport{}, Clusters: []userReport{}, Next: []nextStep{}}
	releases := map[*csv1.ClusterStack][]releaseReport{}
	for _, l := range w.sortedReleases() {
		of := w.stackOf(l)
		releases[of] = append(releases[of], v.release(l, of))
	}
	for _, c := range w.sortedStacks() {
		if s.has(c.Namespace) && (s.Name == "" || s.Name == c.Name) {
			r.Stacks = append(r.Stacks, v.stack(c, releases[c]))
		}
	}
	if s.Name == "" {
		for _, l := range releases[nil] {
			if s.has(l.Namespace) {
				r.Releases = append(r.Releases, l)
			}
		}
		r.Clusters = append(r.Clusters, v.others(s)...)
	}
	r.conclude()
	return r
}

func (v *survey) stack(c *csv1.ClusterStack, releases []releaseReport) stackReport {
	r := stackReport{
		Namespace: c.Namespace, Name: c.Name, Provider: c.Spec.Provider, Stack: c.Spec.Name, Kubernetes: c.Spec.KubernetesVersion,
		Channel: cmp.Or(string(c.Spec.Channel), string(csv1.ChannelStable)), Releases: append([]releaseReport{}, releases...),
	}
	if c.Status.LatestRelease != nil {
		r.LatestRelease = *c.Status.LatestRelease
	}
	s := subject{kind: "ClusterStack", namespace: c.Namespace, name: c.Name, stack: c}
	s.object = fmt.Sprintf("clusterstack -n %s %s", c.Namespace, c.Name)
	for _, l := range releases {
		s.clusters = append(s.clusters, l.Clusters...)
	}
	r.health = v.judge(s, &c.ObjectMeta, c.Status.Conditions)
	return r
}

func (v *survey) release(l *csv1.ClusterStackRelease, of *csv1.ClusterStack) releaseReport {
	r := releaseReport{Namespace: l.Namespace, Name: l.Name, Kubernetes: l.Status.KubernetesVersion, Digest: l.Status.Digest, Clusters: []userReport{}}
	s := subject{kind: "ClusterStackRelease", namespace: l.Namespace, name: l.Name, stack: of, class: l.Name}
	s.object = fmt.Sprintf("clusterstackrelease -n %s %s", l.Namespace, l.Name)
	for _, class := range classesOf(l) {
		s.class = class.Name
		for _, c := range v.users[class] {
			v.inPlace[c] = true
			r.Clusters = append(r.Clusters, v.user(c, l, of))
		}
	}
	sortUsers(r.Clusters)
	s.clusters = r.Clusters
	r.health = v.judge(s, &l.ObjectMeta, l.Status.Conditions)
	if r.State == isReady && of != nil {
		r.Notes = append(r.Notes, remark(of, l.Name)...)
	}
	return r
}

// remark is what a stack has to say of a release that is ready, for example that its source has another
// content by now.
func remark(s *csv1.ClusterStack, release string) (notes []string) {
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

// user is a cluster of a release; of none, if that is nil.
func (v *survey) user(c *clusterv1.Cluster, l *csv1.ClusterStackRelease, of *csv1.ClusterStack) userReport {
	r := userReport{Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{}}
	addon := v.addonOf[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}]
	if addon != nil {
		r.Stages = append(r.Stages, addon.Status.Stages...)
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		r.health = health{State: isLeaving, Message: "it is being deleted"}
		return r
	case addon == nil:
		r.health = health{State: isWaiting, Message: "it has no ClusterAddon yet"}
		return r
	}
	s := subject{kind: "Cluster", namespace: c.Namespace, name: c.Name, stack: of, stage: currentStage(r.Stages)}
	s.object = fmt.Sprintf("clusteraddon -n %s %s", addon.Namespace, addon.Name)
	r.health = v.judge(s, &addon.ObjectMeta, addon.Status.Conditions)
	if failed := topologyFailure(c); r.State == isReady && failed != nil {
		r.health = health{State: isFailed, Reason: failed.Reason, Message: "they are ready, but Cluster API cannot work on the cluster: " + failed.Message}
	}
	// The class of a cluster may have been changed a moment ago, which its add-ons do not know yet.
	if at := addon.Status.Release; l != nil && r.State == isReady && at != "" && at != l.Namespace+"/"+l.Name {
		r.health = health{State: isWaiting, Message: "they are still those of " + at}
	}
	return r
}

// others are clusters whose class is of no release, although they have add-ons, or it is called as if it were
// and is not there.
func (v *survey) others(s selection) (these []userReport) {
	for i := range v.clusters {
		c := &v.clusters[i]
		if !s.has(c.Namespace) || v.inPlace[c] {
			continue
		}
		class := c.Spec.Topology.ClassRef
		if v.addonOf[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] != nil {
			these = append(these, v.user(c, nil, nil))
		} else if _, err := version.ParseReleaseName(class.Name); err == nil && c.DeletionTimestamp.IsZero() && topologyFailure(c) != nil {
			these = append(these, v.lost(c, cmp.Or(class.Namespace, c.Namespace)+"/"+class.Name))
		}
	}
	sortUsers(these)
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

// lost is a cluster that waits for a class which no release has.
func (v *survey) lost(c *clusterv1.Cluster, class string) userReport {
	r := userReport{Namespace: c.Namespace, Name: c.Name, Kubernetes: c.Spec.Topology.Version, Stages: []csv1.StageStatus{}}
	r.health = health{State: isFailed, Reason: csv1.ReasonNotFromRelease, Message: "no release has its class " + class}
	r.steps = append(r.steps, subject{kind: "Cluster", namespace: c.Namespace, name: c.Name}.step(r.Reason, v.kubectl))
	return r
}

func (v *survey) judge(s subject, o *metav1.ObjectMeta, conditions []metav1.Condition) health {
	h, reasons := judgeStatus(o, conditions)
	for _, reason := range reasons {
		h.steps = append(h.steps, s.step(reason, v.kubectl))
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
