package workloadcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// statusTexts is what people read in the status of a cluster.
type statusTexts struct {
	Phase   v1alpha1.Phase
	Actor   v1alpha1.Actor
	Message string
	Next    string
	Undo    string
}

// observeAndSummarize runs observe and summarize, as Reconcile does after its phases.
func observeAndSummarize(t *testing.T, s *scope) statusTexts {
	t.Helper()
	r := newReconciler(t)
	if s.object.DeletionTimestamp.IsZero() {
		if err := r.observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	r.summarize(s)
	st := s.object.Status
	return statusTexts{st.Phase, st.Actor, st.Message, st.NextStep, st.Undo}
}

func failSince(s *scope, condition, reason string, ago time.Duration) {
	c := meta.FindStatusCondition(s.object.Status.Conditions, condition)
	c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionFalse, reason, "not fine", metav1.Time{Time: noon.Add(-ago)}
}

func TestStatusTexts(t *testing.T) {
	young := func(s *scope) { s.object.Status.FirstReadyTime = nil }
	const describe = "it takes longer than it should; see what it waits for: polder describe demo -n tenant"
	for name, c := range map[string]struct {
		change func(*scope)
		want   statusTexts
	}{
		"all is well": {func(*scope) {}, statusTexts{v1alpha1.PhaseReady, v1alpha1.Nobody, "the cluster is ready", "", ""}},
		"nothing was made yet": {
			func(s *scope) {
				young(s)
				s.cluster, s.addon, s.running = nil, nil, nil
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, 0)
			},
			statusTexts{v1alpha1.PhasePending, v1alpha1.Nobody, "nothing of the cluster was made yet", "", ""},
		},
		"its release is being installed": {
			func(s *scope) {
				s.cluster = nil
				s.stall(v1alpha1.ConditionResolved, v1alpha1.ReasonReleaseNotReady, advice{"it is not ready yet", v1alpha1.Nobody, ""})
			},
			statusTexts{v1alpha1.PhasePending, v1alpha1.Nobody, "it is not ready yet", "", ""},
		},
		"the release it is to have is being installed": {
			func(s *scope) {
				s.stall(v1alpha1.ConditionResolved, v1alpha1.ReasonReleaseNotReady, advice{"it is not ready yet", v1alpha1.Nobody, ""})
			},
			statusTexts{v1alpha1.PhaseUpdating, v1alpha1.Nobody, "it is not ready yet", "", ""},
		},
		"the control plane is being made": {
			func(s *scope) {
				young(s)
				s.cluster.Status.Initialization.ControlPlaneInitialized = nil
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, 0)
			},
			statusTexts{v1alpha1.PhaseCreating, v1alpha1.Nobody, "the control plane is being made", "", ""},
		},
		"the control plane is being made, for long": {
			func(s *scope) {
				young(s)
				s.cluster.Status.Initialization.ControlPlaneInitialized = nil
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, progressTimeout)
			},
			statusTexts{v1alpha1.PhaseCreating, v1alpha1.PlatformOperator, "the control plane is being made", describe, ""},
		},
		"a machine is away": {
			func(s *scope) {
				s.cluster.Status.Workers.ReadyReplicas = ptr.To[int32](0)
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, 0)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.Nobody, "0 of 1 machines of the pools are ready", "", ""},
		},
		"a machine is away, for long": {
			func(s *scope) {
				s.cluster.Status.Workers.ReadyReplicas = ptr.To[int32](0)
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, degradedTimeout)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.PlatformOperator, "0 of 1 machines of the pools are ready", describe, ""},
		},
		"a machine is away, and Cluster API knows why": {
			func(s *scope) {
				s.cluster.Status.Workers.ReadyReplicas = ptr.To[int32](0)
				s.setClusterCondition(clusterv1.ClusterWorkerMachinesReadyCondition, metav1.ConditionFalse, "* Machine demo-x:\n  * NodeHealthy: no heartbeat")
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, 0)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.Nobody, "0 of 1 machines of the pools are ready: demo-x: no heartbeat", "", ""},
		},
		"machines come": {
			func(s *scope) {
				s.object.Spec.Workers[0].Replicas, s.cluster.Status.Workers.DesiredReplicas = ptr.To[int32](3), ptr.To[int32](3)
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, degradedTimeout)
			},
			statusTexts{v1alpha1.PhaseUpdating, v1alpha1.Nobody, "1 of 3 machines of the pools are ready", "", ""},
		},
		"machines come, for long": {
			func(s *scope) {
				s.object.Spec.Workers[0].Replicas, s.cluster.Status.Workers.DesiredReplicas = ptr.To[int32](3), ptr.To[int32](3)
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, progressTimeout)
			},
			statusTexts{v1alpha1.PhaseUpdating, v1alpha1.PlatformOperator, "1 of 3 machines of the pools are ready", describe, ""},
		},
		"machines are there, and were never ready": {
			func(s *scope) {
				n := ptr.To[int32](3)
				s.object.Status.Workers = newCounts(1, ptr.To[int32](1), ptr.To[int32](1))
				s.tracked = reconcile.Track(s.object)
				s.object.Spec.Workers[0].Replicas = n
				w := s.cluster.Status.Workers
				w.DesiredReplicas, w.Replicas, w.UpToDateReplicas = n, n, n
			},
			statusTexts{v1alpha1.PhaseUpdating, v1alpha1.Nobody, "1 of 3 machines of the pools are ready", "", ""},
		},
		"machines come, and one of those that were there goes": {
			func(s *scope) {
				n := ptr.To[int32](3)
				s.object.Status.Workers = newCounts(1, ptr.To[int32](1), ptr.To[int32](1))
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesComing, 0)
				s.tracked = reconcile.Track(s.object)
				s.object.Spec.Workers[0].Replicas = n
				w := s.cluster.Status.Workers
				w.DesiredReplicas, w.Replicas, w.UpToDateReplicas, w.ReadyReplicas = n, n, n, ptr.To[int32](0)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.Nobody, "0 of 3 machines of the pools are ready", "", ""},
		},
		"machines go": {
			func(s *scope) {
				s.cluster.Status.Workers.Replicas = ptr.To[int32](3)
				failSince(s, v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesMissing, 0)
			},
			statusTexts{v1alpha1.PhaseUpdating, v1alpha1.Nobody, "1 of 1 machines of the pools are ready, and 2 will go", "", ""},
		},
		"the API is away": {
			func(s *scope) {
				s.setClusterCondition(clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionFalse, "")
				failSince(s, v1alpha1.ConditionReachable, v1alpha1.ReasonUnreachable, 0)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.Nobody, "the cluster's API has not answered since 2026-01-02 11:59:00 UTC", "", ""},
		},
		"Cluster API has not taken it in yet": {
			func(s *scope) {
				s.cluster.Generation = 8
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonMachinesOutOfDate, 0)
			},
			statusTexts{
				v1alpha1.PhaseUpdating, v1alpha1.Nobody, "machines are brought up to date", "",
				"the release: pin another one for Kubernetes v1.36.3 or later in spec.stack.version",
			},
		},
		"Kubernetes is raised": {
			func(s *scope) {
				next := newEntry(t, "local-scs-1-37-v1", "v1.37.0")
				s.running, s.wanted, s.target = &next, next, next
				s.setClusterCondition(clusterv1.ClusterTopologyReconciledCondition, metav1.ConditionFalse, "* Cluster is upgrading to v1.37.0")
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonMachinesOutOfDate, 0)
			},
			statusTexts{
				v1alpha1.PhaseUpdating, v1alpha1.Nobody, "machines are brought up to date: Cluster is upgrading to v1.37.0", "",
				"not the version of Kubernetes: machines are on their way from v1.36.3 to v1.37.0, and it is never lowered",
			},
		},
		"the new release's add-ons come first": {
			func(s *scope) {
				s.wantRelease(newEntry(t, v2, "v1.36.4"))
				s.failAddons(csv1.ReasonStagesRunning, "stage cni")
				failSince(s, v1alpha1.ConditionAddons, v1alpha1.ReasonAddonsFirst, 0)
			},
			statusTexts{
				v1alpha1.PhaseUpdating, v1alpha1.Nobody, "the add-ons of release local-scs-1-36-v2 are applied before its class: stage cni", "",
				"everything: only add-ons of release local-scs-1-36-v2 are applied so far; write the old spec.stack back, and those of release local-scs-1-36-v1 are applied again",
			},
		},
		"the new release's add-ons are stuck": {
			func(s *scope) {
				s.wantRelease(newEntry(t, v2, "v1.36.4"))
				s.failAddons(csv1.ReasonStageTimedOut, "stage cni")
			},
			statusTexts{
				v1alpha1.PhaseStalled, v1alpha1.PlatformOperator, "the add-ons of release local-scs-1-36-v2 are applied before its class: stage cni",
				"see what they wait for: kubectl describe clusteraddon -n tenant cluster-addon-demo",
				"everything: only add-ons of release local-scs-1-36-v2 are applied so far; write the old spec.stack back, and those of release local-scs-1-36-v1 are applied again",
			},
		},
		"an add-on broke": {
			func(s *scope) {
				s.failAddons(csv1.ReasonNotHealthy, "coredns is away")
				failSince(s, v1alpha1.ConditionAddons, csv1.ReasonNotHealthy, 0)
			},
			statusTexts{v1alpha1.PhaseDegraded, v1alpha1.Nobody, "the add-ons are being applied: coredns is away", "", ""},
		},
		"the customer has to act": {
			func(s *scope) {
				s.stall(v1alpha1.ConditionAccepted, v1alpha1.ReasonProviderRefused, advice{"no", v1alpha1.Customer, "correct the spec"})
			},
			statusTexts{v1alpha1.PhaseStalled, v1alpha1.Customer, "no", "correct the spec", ""},
		},
		"the first that is wrong is told, and its actor": {
			func(s *scope) {
				s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonApplyFailed, advice{"later", v1alpha1.PlatformOperator, "later"})
				s.stall(v1alpha1.ConditionResolved, v1alpha1.ReasonStackMissing, advice{"first", v1alpha1.Customer, "first"})
			},
			statusTexts{v1alpha1.PhaseStalled, v1alpha1.Customer, "first", "first", ""},
		},
		"it is paused": {
			func(s *scope) { s.object.Spec.Paused, s.cluster.Spec.Paused = ptr.To(true), ptr.To(true) },
			statusTexts{v1alpha1.PhasePaused, v1alpha1.Customer, "the cluster is paused: nothing is changed, repaired or updated", "take spec.paused away to go on", ""},
		},
		"somebody has paused the Cluster": {
			func(s *scope) { s.cluster.Spec.Paused = ptr.To(true) },
			statusTexts{
				v1alpha1.PhasePaused, v1alpha1.PlatformOperator,
				"the Cluster of this WorkloadCluster is paused, which its spec does not say: nothing is changed, repaired or updated",
				`let it go on with: kubectl patch cluster -n tenant demo --type merge -p '{"spec":{"paused":null}}'`, "",
			},
		},
		"somebody has paused the Cluster by an annotation": {
			func(s *scope) { s.cluster.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
			statusTexts{
				v1alpha1.PhasePaused, v1alpha1.PlatformOperator,
				"the Cluster of this WorkloadCluster is paused, which its spec does not say: nothing is changed, repaired or updated",
				"let it go on with: kubectl annotate cluster -n tenant demo cluster.x-k8s.io/paused-", "",
			},
		},
		"its Cluster cannot be read": {
			func(s *scope) {
				s.cluster.Annotations = map[string]string{clusterv1.PausedAnnotation: "true", v1alpha1.UnreadableAnnotation: "true"}
			},
			statusTexts{
				v1alpha1.PhasePaused, v1alpha1.PlatformOperator,
				"the Cluster of this WorkloadCluster is paused, which its spec does not say: nothing is changed, repaired or updated",
				"the Cluster cannot be read; its Event says what is wrong with it: kubectl get events -n tenant --field-selector reason=UnreadableObject", "",
			},
		},
		"it is paused, and there is nothing to pause": {
			func(s *scope) {
				young(s)
				s.object.Spec.Paused, s.cluster, s.running = ptr.To(true), nil, nil
				failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, 0)
			},
			statusTexts{v1alpha1.PhasePending, v1alpha1.Nobody, "nothing of the cluster was made yet", "", ""},
		},
		"a Cluster of somebody else": {
			func(s *scope) {
				young(s)
				s.cluster.OwnerReferences, s.running = nil, nil
				s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonNotOurs, advice{"another's", v1alpha1.Customer, "rename"})
			},
			statusTexts{v1alpha1.PhaseStalled, v1alpha1.Customer, "another's", "rename", ""},
		},
		"it is being deleted": {
			func(s *scope) {
				s.object.DeletionTimestamp = &metav1.Time{Time: noon}
				failSince(s, v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting, 0)
			},
			statusTexts{v1alpha1.PhaseDeleting, v1alpha1.Nobody, "not fine", "", ""},
		},
		"it is being deleted, and was wrong for long": {
			func(s *scope) {
				s.object.DeletionTimestamp = &metav1.Time{Time: noon}
				failSince(s, v1alpha1.ConditionResolved, v1alpha1.ReasonStackMissing, 24*time.Hour)
			},
			statusTexts{v1alpha1.PhaseDeleting, v1alpha1.Nobody, "the cluster is being deleted", "", ""},
		},
		"it is being deleted, for long": {
			func(s *scope) {
				s.object.DeletionTimestamp = &metav1.Time{Time: noon.Add(-progressTimeout)}
				failSince(s, v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting, 0)
			},
			statusTexts{v1alpha1.PhaseDeleting, v1alpha1.PlatformOperator, "not fine", describe, ""},
		},
		"it is being deleted, though paused": {
			func(s *scope) {
				s.object.Spec.Paused, s.object.DeletionTimestamp = ptr.To(true), &metav1.Time{Time: noon}
				failSince(s, v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting, 0)
			},
			statusTexts{v1alpha1.PhaseDeleting, v1alpha1.Nobody, "not fine", "", ""},
		},
		"it cannot be deleted": {
			func(s *scope) {
				s.object.DeletionTimestamp = &metav1.Time{Time: noon}
				s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonApplyFailed, advice{"refused", v1alpha1.PlatformOperator, "see the log"})
			},
			statusTexts{v1alpha1.PhaseDeleting, v1alpha1.PlatformOperator, "refused", "see the log", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			c.change(s)
			if d := cmp.Diff(c.want, observeAndSummarize(t, s)); d != "" {
				t.Error(d)
			}
			ready := meta.IsStatusConditionTrue(s.object.Status.Conditions, v1alpha1.ConditionReady)
			if ready != (c.want.Phase == v1alpha1.PhaseReady) {
				t.Errorf("condition Ready: %t", ready)
			}
		})
	}
}

func TestNeverReadyWithoutAllConditions(t *testing.T) {
	for _, condition := range readyConditions {
		for name, change := range map[string]func(*scope){
			"is about an older spec": func(s *scope) { meta.FindStatusCondition(s.object.Status.Conditions, condition).ObservedGeneration-- },
			"is missing":             func(s *scope) { meta.RemoveStatusCondition(&s.object.Status.Conditions, condition) },
			"is false":               func(s *scope) { failSince(s, condition, "X", 0) },
			"is unknown": func(s *scope) {
				meta.FindStatusCondition(s.object.Status.Conditions, condition).Status = metav1.ConditionUnknown
			},
		} {
			t.Run(condition+" "+name, func(t *testing.T) {
				s := healthyScope(t)
				change(s)
				newReconciler(t).summarize(s)
				if s.object.Status.Phase == v1alpha1.PhaseReady || meta.IsStatusConditionTrue(s.object.Status.Conditions, v1alpha1.ConditionReady) || s.looksReady() {
					t.Errorf("%+v", s.object.Status)
				}
			})
		}
	}
}

// setStill makes what the scope has now what was written before: nothing has moved since, for a day.
func (s *scope) setStill() {
	s.object.Status.LastProgressTime = &metav1.Time{Time: noon.Add(-24 * time.Hour)}
	s.object.Status.ObservedGeneration = s.object.Generation
	s.tracked = reconcile.Track(s.object)
}

// A cluster that waits is reconciled again when its time is up, and not before.
func TestEscalateOverdue(t *testing.T) {
	const still = "nothing has moved for three minutes; see what it waits for: polder describe demo -n tenant"
	const slow = "it takes longer than it should; see what it waits for: polder describe demo -n tenant"
	for name, c := range map[string]struct {
		ago, recall time.Duration
		moved       time.Duration // ago
		want        time.Duration
		actor       v1alpha1.Actor
		next        string
	}{
		"it has just begun":           {0, 0, 0, stillTimeout + time.Second, v1alpha1.Nobody, ""},
		"it lasts a while, and moves": {10 * time.Minute, 0, time.Minute, 2*time.Minute + time.Second, v1alpha1.Nobody, ""},
		"it lasts long, and moves":    {14 * time.Minute, 0, 0, time.Minute + time.Second, v1alpha1.Nobody, ""},
		"something else comes first":  {0, time.Second, 0, time.Second, v1alpha1.Nobody, ""},
		"it does not move":            {4 * time.Minute, 0, stillTimeout, 0, v1alpha1.PlatformOperator, still},
		"it has not moved before":     {time.Minute, 0, time.Hour, 2*time.Minute + time.Second, v1alpha1.Nobody, ""},
		"it takes too long":           {progressTimeout, 0, 0, 0, v1alpha1.PlatformOperator, slow},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.object.Status.FirstReadyTime, s.requeueAfter = nil, c.recall
			failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, c.ago)
			s.setStill()
			s.object.Status.LastProgressTime = &metav1.Time{Time: noon.Add(-c.moved)}
			newReconciler(t).summarize(s)
			if s.requeueAfter != c.want || s.object.Status.Actor != c.actor || s.object.Status.NextStep != c.next {
				t.Errorf("%s, %s, %s", s.requeueAfter, s.object.Status.Actor, s.object.Status.NextStep)
			}
		})
	}
}

// Whatever moves of a cluster is progress; that time passes, or somebody is called, is none.
func TestLastProgressTime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.WorkloadCluster)
		moved  bool
	}{
		"nothing":                  {func(*v1alpha1.WorkloadCluster) {}, false},
		"a machine":                {func(o *v1alpha1.WorkloadCluster) { o.Status.Workers.Ready = ptr.To[int32](1) }, true},
		"a machine of a pool":      {func(o *v1alpha1.WorkloadCluster) { o.Status.Pools = []v1alpha1.PoolStatus{{Name: "a"}} }, true},
		"an add-on":                {func(o *v1alpha1.WorkloadCluster) { o.Status.Addons = []v1alpha1.AddonStatus{{Name: "a"}} }, true},
		"a version":                {func(o *v1alpha1.WorkloadCluster) { o.Status.Versions.Kubernetes = "v1.36.4" }, true},
		"the spec":                 {func(o *v1alpha1.WorkloadCluster) { o.Generation++ }, true},
		"the text of a problem":    {func(o *v1alpha1.WorkloadCluster) { o.Status.Conditions[3].Message = "another" }, true},
		"the number of an attempt": {func(o *v1alpha1.WorkloadCluster) { o.Status.Conditions[3].Message = "fine7" }, false},
		"who must act":             {func(o *v1alpha1.WorkloadCluster) { o.Status.Actor, o.Status.NextStep = v1alpha1.Customer, "act" }, false},
		"a time":                   {func(o *v1alpha1.WorkloadCluster) { o.Status.Conditions[3].LastTransitionTime = metav1.Time{Time: noon} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.setStill()
			c.change(s.object)
			newReconciler(t).summarize(s)
			if moved := s.object.Status.LastProgressTime.Time.Equal(noon); moved != c.moved {
				t.Errorf("moved: %t", moved)
			}
		})
	}
}

// The operator is not called for what could not have begun earlier, however long it is missing.
func TestWaitingSince(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.Time{Time: noon.Add(-d)} }
	became := func(condition string, d time.Duration) func(*scope) {
		return func(s *scope) {
			meta.FindStatusCondition(s.object.Status.Conditions, condition).LastTransitionTime = ago(d)
		}
	}
	paused := func(is metav1.ConditionStatus, generation int64, d time.Duration) func(*scope) {
		return func(s *scope) {
			s.cluster.Status.Conditions = append(s.cluster.Status.Conditions, metav1.Condition{
				Type: clusterv1.PausedCondition, Status: is, ObservedGeneration: generation, LastTransitionTime: ago(d),
			})
		}
	}
	for name, c := range map[string]struct {
		change func(*scope)
		want   time.Duration // until it is reconciled again; 0 if it takes too long
	}{
		"nothing was in its way":                  {func(*scope) {}, 0},
		"its stack has come":                      {became(v1alpha1.ConditionResolved, time.Minute), stillTimeout - time.Minute + time.Second},
		"its stack has come long ago":             {became(v1alpha1.ConditionResolved, progressTimeout), 0},
		"its provider takes it now":               {became(v1alpha1.ConditionAccepted, time.Minute), stillTimeout - time.Minute + time.Second},
		"Cluster API takes it now":                {became(v1alpha1.ConditionApplied, time.Minute), stillTimeout - time.Minute + time.Second},
		"its Cluster is new":                      {func(s *scope) { s.cluster.CreationTimestamp = ago(time.Minute) }, stillTimeout - time.Minute + time.Second},
		"its Cluster is old":                      {func(s *scope) { s.cluster.CreationTimestamp = ago(time.Hour) }, 0},
		"it was paused until now":                 {paused(metav1.ConditionFalse, 7, time.Minute), stillTimeout - time.Minute + time.Second},
		"it was paused long ago":                  {paused(metav1.ConditionFalse, 6, time.Hour), 0},
		"somebody else has paused it":             {paused(metav1.ConditionTrue, 7, time.Minute), 0},
		"what comes after it does not matter":     {became(v1alpha1.ConditionReachable, time.Minute), 0},
		"what was in its way is in its way again": {func(s *scope) { failSince(s, v1alpha1.ConditionApplied, v1alpha1.ReasonProgressing, time.Hour) }, 0},
		"the last thing that was in its way counts": {func(s *scope) {
			became(v1alpha1.ConditionApplied, 2*time.Minute)(s)
			became(v1alpha1.ConditionResolved, 3*time.Minute)(s)
		}, stillTimeout - 2*time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.object.Status.FirstReadyTime = nil
			failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, 2*time.Hour)
			c.change(s)
			s.setStill()
			newReconciler(t).summarize(s)
			if called := s.object.Status.Actor != v1alpha1.Nobody; s.requeueAfter != c.want || called != (c.want == 0) {
				t.Errorf("%s, %s, want %s", s.requeueAfter, s.object.Status.Actor, c.want)
			}
		})
	}
	t.Run("Cluster API has not seen yet that it is not paused", func(t *testing.T) {
		s := healthyScope(t)
		failSince(s, v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet, 2*time.Hour)
		paused(metav1.ConditionTrue, 6, 2*time.Hour)(s)
		newReconciler(t).summarize(s)
		if s.object.Status.Actor != v1alpha1.Nobody {
			t.Errorf("%+v", s.object.Status)
		}
	})
}

// A run that ended early has found out nothing: how long a condition was true says nothing of how long it is not.
func TestNotOverdueWithUnknownConditions(t *testing.T) {
	s := healthyScope(t)
	s.object.Generation++
	newReconciler(t).summarize(s)
	if st := s.object.Status; st.Actor != v1alpha1.Nobody || st.Phase == v1alpha1.PhaseReady {
		t.Errorf("%+v", st)
	}
}

func TestFirstReadyTimeIsTheFirst(t *testing.T) {
	s := healthyScope(t)
	s.object.Status.FirstReadyTime = nil
	newReconciler(t).summarize(s)
	if s.object.Status.FirstReadyTime == nil || !s.object.Status.FirstReadyTime.Time.Equal(noon) {
		t.Errorf("%v", s.object.Status.FirstReadyTime)
	}
	s = healthyScope(t)
	was := s.object.Status.FirstReadyTime.Time
	newReconciler(t).summarize(s)
	if !s.object.Status.FirstReadyTime.Time.Equal(was) {
		t.Errorf("%v", s.object.Status.FirstReadyTime)
	}
}

// The two conditions that tools such as kubectl wait for are there only if they are true.
func TestSetKstatusConditions(t *testing.T) {
	for phase, want := range map[v1alpha1.Phase]string{
		v1alpha1.PhaseReady: "", v1alpha1.PhasePaused: "", v1alpha1.PhaseStalled: "Stalled", v1alpha1.PhasePending: "Reconciling",
		v1alpha1.PhaseCreating: "Reconciling",
		v1alpha1.PhaseUpdating: "Reconciling", v1alpha1.PhaseDegraded: "Reconciling", v1alpha1.PhaseDeleting: "Reconciling",
	} {
		for _, before := range []string{"", "Stalled", "Reconciling"} {
			o := &v1alpha1.WorkloadCluster{}
			if before != "" {
				o.Status.Conditions = []metav1.Condition{{Type: before, Status: metav1.ConditionTrue}}
			}
			o.Status.Phase, o.Status.Message = phase, "m"
			setKstatusConditions(o)
			var got []string
			for _, c := range o.Status.Conditions {
				got = append(got, c.Type)
				if c.Status != metav1.ConditionTrue || c.Message != "m" || c.Reason != string(phase) {
					t.Errorf("%s: %+v", phase, c)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s after %q: %v, want %q", phase, before, got, want)
			}
		}
	}
}

func TestRecordPhaseEvent(t *testing.T) {
	for name, c := range map[string]struct {
		was, is v1alpha1.Phase
		want    string
	}{
		"the same":  {v1alpha1.PhaseReady, v1alpha1.PhaseReady, ""},
		"good news": {v1alpha1.PhaseCreating, v1alpha1.PhaseReady, "Normal Ready m"},
		"bad news":  {v1alpha1.PhaseReady, v1alpha1.PhaseDegraded, "Warning Degraded m"},
		"it stalls": {v1alpha1.PhaseReady, v1alpha1.PhaseStalled, "Warning Stalled m"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			s := healthyScope(t)
			s.tracked.Stored().Status.Phase, s.object.Status.Phase, s.object.Status.Message = c.was, c.is, "m"
			(&Reconciler{Events: recorder}).recordPhaseEvent(s)
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
