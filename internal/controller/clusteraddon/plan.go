package clusteraddon

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
)

// planStages decides which stages are to be run. A cluster that has no add-ons yet gets those for new
// clusters; one whose class is another than that whose stages were run, those for upgrades. Whatever was
// begun for another release is given up: only what the Cluster asks for now counts.
func (r *Reconciler) planStages(_ context.Context, s *scope) error {
	s.setCondition(csv1.ConditionClusterReady, "", "the cluster takes add-ons")
	st := &s.addon.Status
	target := targetOf(s.release)
	if st.Target == target && st.TargetDigest == s.release.Status.Digest && len(st.Stages) == len(s.stages()) {
		return nil
	}
	st.Target, st.TargetDigest = target, s.release.Status.Digest
	st.Hook = stack.AfterControlPlaneInitialized
	if st.Release != "" {
		st.Hook = stack.BeforeClusterUpgrade
	}
	st.Stages = nil
	for _, def := range s.stages() {
		st.Stages = append(st.Stages, csv1.StageStatus{Name: stageName(def), Action: def.Action, Phase: csv1.StagePending})
	}
	r.forgetLastApply(client.ObjectKeyFromObject(s.cluster))
	s.setCondition(csv1.ConditionApplied, csv1.ReasonStagesRunning, "the add-ons of "+s.release.Name+" are being applied")
	return nil
}

func targetOf(r *csv1.ClusterStackRelease) string { return r.Namespace + "/" + r.Name }

// stageName is that of a stage; the one add-on of an old release has none.
func stageName(s stack.Stage) string {
	if s.Name == "" {
		return "cluster-addon"
	}
	return s.Name
}

// runtimeHook is the one whose stages are run. A release that says nothing of upgrades has the same stages for
// both: its add-ons would never change otherwise.
func (s *scope) runtimeHook() string {
	if s.addon.Status.Hook == stack.BeforeClusterUpgrade && len(s.content.Stages(stack.BeforeClusterUpgrade)) == 0 {
		return stack.AfterControlPlaneInitialized
	}
	return s.addon.Status.Hook
}

func (s *scope) stages() []stack.Stage { return s.content.Stages(s.runtimeHook()) }

// setStagePhase puts a stage into another phase.
func setStagePhase(ss *csv1.StageStatus, phase csv1.StagePhase) {
	if ss.Phase != phase {
		ss.Phase, ss.Message = phase, ""
		ss.Since = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	}
}
