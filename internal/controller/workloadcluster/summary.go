package workloadcluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// How long something may take until the platform operator is called.
const (
	progressTimeout = 15 * time.Minute // for what is being created or changed
	degradedTimeout = 5 * time.Minute  // for what worked, and does not
	stillTimeout    = 3 * time.Minute  // for what does not move at all
)

// summarize makes of all conditions what people read, and records an event if the phase changes.
func (r *Reconciler) summarize(s *scope) {
	o := s.object
	st := &o.Status
	st.ObservedGeneration = o.Generation
	first := s.firstFalse()
	ready := s.readyCondition(first)
	a := advice{text: ready.Message, actor: v1alpha1.Nobody}
	if given, ok := s.advice[first]; ok {
		a = given
	}
	switch {
	case !o.DeletionTimestamp.IsZero():
		ready = s.deletingCondition(ready, &a)
	// A pause counts once the Cluster has it. Before, and while the Cluster is deleted, other conditions matter more.
	case ptr.Deref(o.Spec.Paused, false) && s.cluster != nil && ptr.Deref(s.cluster.Spec.Paused, false) &&
		s.cluster.DeletionTimestamp.IsZero():
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonPaused
		ready.Message = "the cluster is paused: nothing is changed, repaired or updated"
		a = advice{ready.Message, v1alpha1.Customer, "take spec.paused away to go on"}
	case s.isPausedByHand():
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonPaused
		ready.Message = "the Cluster of this WorkloadCluster is paused, which its spec does not say: " +
			"nothing is changed, repaired or updated"
		a = advice{ready.Message, v1alpha1.PlatformOperator, s.unpauseCommand()}
	case ready.Status == metav1.ConditionTrue:
		ready.Message = "the cluster is ready"
		a = advice{text: ready.Message, actor: v1alpha1.Nobody}
		if st.FirstReadyTime == nil {
			st.FirstReadyTime = &metav1.Time{Time: r.Clock.Now().Truncate(time.Second)}
		}
	}
	if s.hasMoved() {
		st.LastProgressTime = &metav1.Time{Time: r.Clock.Now().Truncate(time.Second)}
	}
	// Before escalateOverdue, whose limit depends on the phase.
	st.Phase = s.phase(ready, a)
	if a.actor == v1alpha1.Nobody && ready.Status != metav1.ConditionTrue {
		r.escalateOverdue(s, &a, first)
	}
	st.Message, st.Actor, st.NextStep = reconcile.TruncateMessage(a.text), cmp.Or(a.actor,
		v1alpha1.Nobody), reconcile.TruncateMessage(a.next)
	st.Undo = s.describeUndo()
	s.conditions.Set(ready)
	setKstatusConditions(o)
	r.recordPhaseEvent(s)
}

// currentConditions returns the conditions that are about the current generation: a run that ended early has left
// others as they were.
func currentConditions(o *v1alpha1.WorkloadCluster) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(o.Status.Conditions),
		func(c metav1.Condition) bool { return c.ObservedGeneration != o.Generation })
}

// readyCondition returns the condition that sums up all others: the first that is not true decides.
func (s *scope) readyCondition(first string) metav1.Condition {
	of := readyConditions
	if first != "" {
		of = []string{first}
	}
	return reconcile.Summary(currentConditions(s.object), v1alpha1.ConditionReady, s.object.Generation, of...)
}

// firstFalse returns the condition that is reported first; "" if all are true. A run ends with the phase that stalls:
// its condition comes before those that earlier phases did not check, or wait for.
func (s *scope) firstFalse() string {
	for _, t := range phaseConditions {
		if _, ok := s.advice[t]; ok {
			return t
		}
	}
	known := currentConditions(s.object)
	for _, t := range readyConditions {
		if !meta.IsStatusConditionTrue(known, t) {
			return t
		}
	}
	return ""
}

// deletingCondition returns the Ready condition of a cluster that is being deleted, and sets its advice.
func (s *scope) deletingCondition(ready metav1.Condition, a *advice) metav1.Condition {
	ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonDeleting
	ready.Message = "the cluster is being deleted"
	if c := meta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionApplied); c != nil &&
		c.Status == metav1.ConditionFalse {
		ready.Message = c.Message
	}
	if given, ok := s.advice[v1alpha1.ConditionApplied]; ok {
		*a = given
		return ready
	}
	*a = advice{text: ready.Message, actor: v1alpha1.Nobody}
	return ready
}

// isPausedByHand reports whether somebody has paused the Cluster, which is not ours to undo, by its spec or by Cluster
// API's annotation.
func (s *scope) isPausedByHand() bool {
	if s.cluster == nil || !s.ownsCluster() || !s.cluster.DeletionTimestamp.IsZero() {
		return false
	}
	_, annotated := s.cluster.Annotations[clusterv1.PausedAnnotation]
	return annotated || ptr.Deref(s.cluster.Spec.Paused, false) && !ptr.Deref(s.object.Spec.Paused, false)
}

// unpauseCommand says how to let Cluster API go on.
func (s *scope) unpauseCommand() string {
	if s.cluster.Annotations[v1alpha1.UnreadableAnnotation] != "" { // then it was paused by us, see package unreadable
		return fmt.Sprintf("the Cluster cannot be read; its Event says what is wrong with it: kubectl get events -n %s "+
			"--field-selector reason=UnreadableObject", s.object.Namespace)
	}
	if _, annotated := s.cluster.Annotations[clusterv1.PausedAnnotation]; annotated {
		return fmt.Sprintf("let it go on with: kubectl annotate cluster -n %s %s %s-", s.object.Namespace, s.object.Name,
			clusterv1.PausedAnnotation)
	}
	return fmt.Sprintf(`let it go on with: kubectl patch cluster -n %s %s --type merge -p '{"spec":{"paused":null}}'`,
		s.object.Namespace, s.object.Name)
}

// hasMoved reports whether something of the cluster is other than it was at the last write of its status.
func (s *scope) hasMoved() bool {
	was, is := s.tracked.Stored().Status, s.object.Status
	return was.LastProgressTime == nil || was.ObservedGeneration != is.ObservedGeneration ||
		!equality.Semantic.DeepEqual(movingParts(was), movingParts(is))
}

// movingParts are what changes of a status when a cluster gets on. Digits of messages do not count: that an attempt is
// the seventh is no progress.
func movingParts(st v1alpha1.WorkloadClusterStatus) []any {
	parts := []any{st.Versions, st.ControlPlane, st.Workers, st.Pools, st.Addons, st.Endpoint}
	for _, t := range readyConditions {
		c := ptr.Deref(meta.FindStatusCondition(st.Conditions, t), metav1.Condition{})
		parts = append(parts, c.Status, c.Reason, strings.Map(dropDigit, c.Message))
	}
	return parts
}

func dropDigit(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}

// phase returns where the cluster is, in one word.
func (s *scope) phase(ready metav1.Condition, a advice) v1alpha1.Phase {
	switch {
	case !s.object.DeletionTimestamp.IsZero():
		return v1alpha1.PhaseDeleting
	case ready.Reason == v1alpha1.ReasonPaused:
		return v1alpha1.PhasePaused
	case ready.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseReady
	case a.actor != v1alpha1.Nobody && a.actor != "":
		return v1alpha1.PhaseStalled
	case s.cluster == nil:
		return v1alpha1.PhasePending
	case s.object.Status.FirstReadyTime == nil:
		return v1alpha1.PhaseCreating
	case s.isChanging():
		return v1alpha1.PhaseUpdating
	}
	return v1alpha1.PhaseDegraded
}

// isChanging reports whether the cluster is on its way to what the spec says: what is not ready may be due to that.
func (s *scope) isChanging() bool {
	if meta.IsStatusConditionFalse(s.object.Status.Conditions, v1alpha1.ConditionResolved) {
		return true // the release that it is to have is not ready yet
	}
	for _, t := range []string{v1alpha1.ConditionControlPlane, v1alpha1.ConditionWorkers, v1alpha1.ConditionAddons} {
		if c := meta.FindStatusCondition(s.object.Status.Conditions, t); c != nil &&
			(c.Reason == v1alpha1.ReasonMachinesOutOfDate || c.Reason == v1alpha1.ReasonMachinesComing ||
				c.Reason == v1alpha1.ReasonAddonsFirst || c.Reason == v1alpha1.ReasonProgressing) {
			return true
		}
	}
	c := s.cluster
	cp, w := c.Status.ControlPlane, c.Status.Workers
	return !isTopologyReconciled(c) ||
		cp != nil && replicasDiffer(cp.DesiredReplicas, cp.Replicas, cp.UpToDateReplicas) || w != nil &&
		replicasDiffer(w.DesiredReplicas, w.Replicas, w.UpToDateReplicas) ||
		s.addon != nil && s.addon.Status.Release != s.addon.Status.Target
}

// replicasDiffer reports whether Cluster API still creates, deletes or replaces machines.
func replicasDiffer(desired, there, upToDate *int32) bool {
	return desired != nil && (there == nil || *there != *desired || upToDate == nil || *upToDate != *desired)
}

// escalateOverdue calls for the platform operator if something takes too long, or nothing moves. Before that, it
// requeues for the time when it will.
func (r *Reconciler) escalateOverdue(s *scope, a *advice, first string) {
	since := s.waitingSince(first)
	if since == nil {
		return
	}
	limit := progressTimeout
	if s.object.Status.Phase == v1alpha1.PhaseDegraded {
		limit = degradedTimeout
	}
	now := r.Clock.Now()
	moved := later(*since, ptr.Deref(s.object.Status.LastProgressTime, *since))
	took, still := now.Sub(since.Time), now.Sub(moved.Time)
	if took < limit && still < stillTimeout {
		s.requeueAfter = minNonZero(s.requeueAfter, min(limit-took, stillTimeout-still)+time.Second)
		return
	}
	why := "it takes longer than it should"
	if took < limit {
		why = "nothing has moved for three minutes"
	}
	a.actor = v1alpha1.PlatformOperator
	a.next = fmt.Sprintf("%s; see what it waits for: polder describe %s -n %s", why, s.object.Name, s.object.Namespace)
}

// waitingSince returns since when a condition is waited for; nil if that is not known, because the condition is of an
// earlier generation. A condition that was false before anything could be done about it counts from the time when the
// last obstacle was gone.
func (s *scope) waitingSince(first string) *metav1.Time {
	if d := s.object.DeletionTimestamp; d != nil {
		return d // whatever was wrong before does not matter any more
	}
	c := meta.FindStatusCondition(s.object.Status.Conditions, first)
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	at := c.LastTransitionTime
	for _, t := range phaseConditions {
		if p := meta.FindStatusCondition(s.object.Status.Conditions, t); p != nil && p.Status == metav1.ConditionTrue {
			at = later(at, p.LastTransitionTime)
		}
	}
	if s.cluster == nil {
		return &at
	}
	at = later(at, s.cluster.CreationTimestamp)
	switch p := meta.FindStatusCondition(s.cluster.Status.Conditions, clusterv1.PausedCondition); {
	case p == nil:
	case p.Status != metav1.ConditionTrue:
		at = later(at, p.LastTransitionTime)
	case p.ObservedGeneration != s.cluster.Generation:
		return nil // Cluster API is about to go on
	}
	return &at
}

// later returns the later of two times.
func later(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

// describeUndo says what of an update can still be undone.
func (s *scope) describeUndo() string {
	c := s.cluster
	if c == nil || s.running == nil || s.wanted.Object == nil || s.object.Status.FirstReadyTime == nil ||
		!s.object.DeletionTimestamp.IsZero() {
		return "" // there is no update
	}
	is, want := s.object.Status.Versions.Kubernetes, s.wanted.Object.Status.KubernetesVersion
	switch {
	case s.isPreparingAddons():
		return fmt.Sprintf(
			"everything: only add-ons of release %s are applied so far; write the old spec.stack back, and those of release %s are applied again", s.wanted.Tag(), s.target.Tag(),
		)
	case is != "" && is != want:
		return fmt.Sprintf("not the version of Kubernetes: machines are on their way from %s to %s, and it is never lowered",
			is, want)
	case !isTopologyReconciled(c):
		return fmt.Sprintf("the release: pin another one for Kubernetes %s or later in spec.stack.version", want)
	}
	return ""
}

// setKstatusConditions sets the two conditions that kstatus knows. They are there only if they are true.
func setKstatusConditions(o *v1alpha1.WorkloadCluster) {
	st := &o.Status
	set := func(t string, is bool) {
		if !is {
			meta.RemoveStatusCondition(&st.Conditions, t)
			return
		}
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: t, Status: metav1.ConditionTrue, Reason: string(st.Phase), Message: st.Message,
			ObservedGeneration: o.Generation,
		})
	}
	set(v1alpha1.ConditionStalled, st.Phase == v1alpha1.PhaseStalled)
	set(v1alpha1.ConditionReconciling,
		st.Phase == v1alpha1.PhasePending || st.Phase == v1alpha1.PhaseCreating || st.Phase == v1alpha1.PhaseUpdating ||
			st.Phase == v1alpha1.PhaseDegraded || st.Phase == v1alpha1.PhaseDeleting)
}

// recordPhaseEvent records an event for every change of phase.
func (r *Reconciler) recordPhaseEvent(s *scope) {
	was, is := s.tracked.Stored().Status.Phase, s.object.Status.Phase
	if was == is {
		return
	}
	kind := "Normal"
	if is == v1alpha1.PhaseStalled || is == v1alpha1.PhaseDegraded {
		kind = "Warning"
	}
	r.Events.Eventf(s.object, nil, kind, string(is), "Reconcile", "%s", s.object.Status.Message)
}
