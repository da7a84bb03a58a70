package clusterstack

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/lineage/advice"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/version"
)

// mapKeys returns the keys of a set.
func mapKeys(m map[string]bool) iter.Seq[string] { return maps.Keys(m) }

// publishStatus writes into the status which releases there are and which can be used.
func (r *Reconciler) publishStatus(_ context.Context, s *scope) error {
	slices.SortFunc(s.releases, func(a, b csv1.ClusterStackRelease) int {
		return version.Compare(versionOf(&a), versionOf(&b))
	})
	st := &s.object.Status
	st.Summary, st.LatestRelease, st.UsableVersions = nil, nil, nil
	var usable, waiting []string
	for i := range s.releases {
		rel := &s.releases[i]
		sum := r.summarizeRelease(s, rel)
		st.Summary = append(st.Summary, sum)
		if *sum.Ready {
			usable = append(usable, sum.Name)
		} else if rel.DeletionTimestamp.IsZero() {
			waiting = append(waiting, fmt.Sprintf("%s: %s", rel.Name, ptr.Deref(sum.Message, "it has not been looked at yet")))
		}
	}
	if latest := newestReady(s.releases); latest != nil {
		st.LatestRelease = ptr.To(latest.Name + " | " + latest.Status.KubernetesVersion)
		st.UsableVersions = ptr.To(strings.Join(usable, ","))
		s.conditions.SetTrue(csv1.ConditionReleaseAvailable, pluralize(len(usable), "release")+" can be used")
	} else {
		s.conditions.SetFalse(csv1.ConditionReleaseAvailable, csv1.ReasonNoRelease, "no release can be used yet")
	}
	switch {
	case len(s.problems) > 0: // they are in the condition already, and matter more than what passes by itself
	case len(waiting) > 0:
		s.conditions.SetFalse(csv1.ConditionReleasesSynced, csv1.ReasonReleasesNotReady, strings.Join(waiting, "; "))
	case len(s.releases) == 0 && s.source.err != nil:
		s.conditions.SetFalse(csv1.ConditionReleasesSynced, s.source.reason, s.source.err.Error())
	case len(s.releases) == 0:
		s.conditions.SetFalse(csv1.ConditionReleasesSynced, csv1.ReasonNoRelease,
			s.source.describeNoReleases(s.object)+"; publish one, or correct the ClusterStack")
	default:
		s.conditions.SetTrue(csv1.ConditionReleasesSynced, "all releases are ready")
	}
	return nil
}

// summarizeRelease returns the summary of a release for the status. A tag that was moved at the source is reported and
// not followed (ADR 9).
func (r *Reconciler) summarizeRelease(s *scope, rel *csv1.ClusterStackRelease) csv1.ReleaseSummary {
	sum := csv1.ReleaseSummary{Name: versionOf(rel).String(), Ready: ptr.To(isReady(rel)), Phase: ptr.To(phase(rel))}
	c := meta.FindStatusCondition(rel.Status.Conditions, csv1.ConditionReady)
	if c != nil && c.Status != metav1.ConditionTrue {
		sum.Message = ptr.To(reconcile.TruncateMessage(c.Message))
	}
	if e, ok := s.source.findEntry(rel.Name); ok && rel.Status.Digest != "" && e.Digest != "" &&
		e.Digest != rel.Status.Digest {
		m := fmt.Sprintf("the source has another content under this name by now (%s)", e.Digest)
		if *sum.Ready {
			m += "; what was published first is served"
		} else if sum.Message != nil {
			m = reconcile.TruncateMessage(*sum.Message + "; " + m)
		}
		sum.Message = &m
		if !isReported(s.tracked.Initial(), sum) {
			r.Events.Eventf(s.object, rel, "Warning", csv1.ReasonDigestChanged, "Reconcile", "%s: %s", rel.Name, m)
		}
	}
	return sum
}

// isReported reports whether the status has this message already, so that its event is recorded once.
func isReported(o *csv1.ClusterStack, sum csv1.ReleaseSummary) bool {
	return slices.ContainsFunc(o.Status.Summary, func(x csv1.ReleaseSummary) bool {
		return x.Name == sum.Name && ptr.Deref(x.Message, "") == *sum.Message
	})
}

// phase returns how far a release is, in the words of the operator that came before.
func phase(r *csv1.ClusterStackRelease) string {
	switch {
	case isReady(r):
		return csv1.PhaseDone
	case meta.IsStatusConditionTrue(r.Status.Conditions, csv1.ConditionDownloaded):
		return csv1.PhaseApplying
	case len(r.Status.Conditions) > 0:
		return csv1.PhaseDownloading
	default:
		return csv1.PhaseNone
	}
}

// versionOf returns the version of a release of the stack.
func versionOf(r *csv1.ClusterStackRelease) version.Version {
	name, _ := version.ParseReleaseName(r.Name) // releases of a stack have valid names
	return name.Version
}

// summarize summarises all conditions in Ready, and records an event if that changes. A source that does not answer is
// reported there too, but the stack stays ready.
func (r *Reconciler) summarize(s *scope) {
	o := s.object
	if o.Spec.ProviderRef != nil {
		s.conditions.Set(lineage.ProviderRefIgnored())
	} else {
		s.conditions.Remove(csv1.ConditionProviderRefIgnored)
	}
	c := s.conditions.Summarize(csv1.ConditionReady, csv1.ConditionReleasesSynced, csv1.ConditionReleaseAvailable)
	if c.Status == metav1.ConditionTrue {
		if failure := sourceFailure(o); failure != nil {
			c.Reason, c.Message = failure.Reason, reconcile.TruncateMessage("what is there is served, but "+failure.Message)
		}
	}
	old := meta.FindStatusCondition(s.tracked.Initial().Status.Conditions, csv1.ConditionReady)
	s.conditions.Set(c)
	o.Status.Actor, o.Status.NextStep = advice.For(advice.Object{
		Kind: "ClusterStack", Meta: &o.ObjectMeta, Stack: o, Conditions: o.Status.Conditions, Releases: s.releases,
	})
	if old == nil || old.Status != c.Status || old.Reason != c.Reason {
		kind, said := "Normal", c.Message
		if c.Reason != csv1.ReasonReady && c.Reason != csv1.ReasonReleasesNotReady {
			kind = "Warning"
		}
		if said == "" {
			said = "releases " + ptr.Deref(o.Status.UsableVersions, "") + " can be used"
		}
		r.Events.Eventf(o, nil, kind, c.Reason, "Reconcile", "%s", said)
	}
}
