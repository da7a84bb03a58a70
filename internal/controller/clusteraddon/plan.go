package clusteraddon

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
)

// planStages decides which stages are to be run. A cluster that has no add-ons yet gets the stages for new clusters.
// One at another release gets those for upgrades. Whatever was begun for another release is given up: only what the
// Cluster asks for now counts.
func (r *Reconciler) planStages(_ context.Context, s *scope) error {
	s.conditions.SetTrue(csv1.ConditionClusterReady, "the cluster takes add-ons")
	st := &s.addon.Status
	target := targetOf(s.release)
	// The number of stages is compared too: runStages needs one entry for each, whatever was done to the status.
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
	r.lastApplies.Forget(client.ObjectKeyFromObject(s.cluster))
	s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonStagesRunning,
		"the add-ons of "+s.release.Name+" are being applied")
	return nil
}

// targetOf returns the name of a release as status.target has it.
func targetOf(r *csv1.ClusterStackRelease) string { return r.Namespace + "/" + r.Name }

// stageName returns the name of a stage. The one add-on of an old release has none.
func stageName(s stack.Stage) string {
	if s.Name == "" {
		return "cluster-addon"
	}
	return s.Name
}

// runtimeHook returns the runtime hook whose stages are run. A release without stages for upgrades has the same for
// both: its add-ons would never change otherwise.
func (s *scope) runtimeHook() string {
	if s.addon.Status.Hook == stack.BeforeClusterUpgrade && len(s.content.Stages(stack.BeforeClusterUpgrade)) == 0 {
		return stack.AfterControlPlaneInitialized
	}
	return s.addon.Status.Hook
}

// stages returns the stages of the release that are run.
func (s *scope) stages() []stack.Stage { return s.content.Stages(s.runtimeHook()) }

// setStagePhase puts a stage into another phase. The phase's time is kept while it stays, since time-outs count from
// it.
func (r *Reconciler) setStagePhase(ss *csv1.StageStatus, phase csv1.StagePhase) {
	if ss.Phase != phase {
		ss.Phase, ss.Message = phase, ""
		ss.Since = &metav1.Time{Time: r.Clock.Now().Truncate(time.Second)}
	}
}
