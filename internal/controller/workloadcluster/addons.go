package workloadcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

const stageDone = csv1.StageDone

// observeAddons reports how the add-ons are. They are ready if they are those of the release, were applied for the
// Cluster as it is now, and are healthy.
func (s *scope) observeAddons() {
	if s.addon == nil {
		s.conditions.SetFalse(v1alpha1.ConditionAddons, v1alpha1.ReasonNotThereYet, "the add-ons are not there yet")
		return
	}
	st := s.addon.Status
	ready := meta.FindStatusCondition(st.Conditions, csv1.ConditionReady)
	why := ""
	if ready != nil && ready.Message != "" && !ptr.Deref(st.Ready, false) {
		why = ": " + ready.Message
	}
	switch {
	// Without a resolved release in this run, wanted and target say nothing.
	case s.catalogue != nil && s.wanted.Object != nil && s.isPreparingAddons():
		text := fmt.Sprintf("the add-ons of release %s are applied before its class%s", s.wanted.Tag(), why)
		if ready != nil && stuckReasons[ready.Reason] {
			s.stall(v1alpha1.ConditionAddons, v1alpha1.ReasonAddonsFirst, advice{
				text, v1alpha1.PlatformOperator, s.addonsHint(),
			})
			return
		}
		s.conditions.SetFalse(v1alpha1.ConditionAddons, v1alpha1.ReasonAddonsFirst, text)
	case ready != nil && stuckReasons[ready.Reason]:
		s.stall(v1alpha1.ConditionAddons, ready.Reason, advice{
			"the add-ons do not get on" + why, v1alpha1.PlatformOperator, s.addonsHint(),
		})
	case !ptr.Deref(st.Ready, false) || ready == nil:
		reason := v1alpha1.ReasonNotThereYet
		if ready != nil {
			reason = ready.Reason
		}
		s.conditions.SetFalse(v1alpha1.ConditionAddons, reason, "the add-ons are being applied"+why)
	case st.Release != st.Target || s.target.Object != nil && st.Release != s.target.Key().String():
		s.conditions.SetFalse(v1alpha1.ConditionAddons, v1alpha1.ReasonProgressing,
			fmt.Sprintf("the add-ons are those of %s", st.Release))
	case st.ClusterGeneration != s.cluster.Generation:
		s.conditions.SetFalse(v1alpha1.ConditionAddons, v1alpha1.ReasonProgressing,
			"the add-ons are being applied for what the spec says now")
	default:
		s.conditions.SetTrue(v1alpha1.ConditionAddons, "all add-ons are there and healthy")
	}
}

// stuckReasons are the reasons that go away only if somebody acts.
var stuckReasons = map[string]bool{
	csv1.ReasonNotAllowed: true, csv1.ReasonInvalid: true, csv1.ReasonRefused: true, csv1.ReasonStageTimedOut: true,
	csv1.ReasonConditionInvalid: true, csv1.ReasonNotFromRelease: true,
}

// addonsHint says how to look closer at add-ons.
func (s *scope) addonsHint() string {
	return fmt.Sprintf("see what they wait for: kubectl describe clusteraddon -n %s %s", s.object.Namespace,
		csv1.AddonPrefix+s.object.Name)
}
