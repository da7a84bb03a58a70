// Package clusteraddon reconciles ClusterAddons: it brings the add-ons of a release into the clusters that are made of
// it, stage by stage, and keeps them there.
//
// There is one ClusterAddon for each Cluster whose class is of a release. All decisions are made from its status and
// from what is observed: what the Cluster asks for, what was applied, what the workload cluster answers.
package clusteraddon

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/lineage/advice"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/internal/workload"
	"github.com/polder-kaas/polder/stack"
)

// runTimeout is how long one run may take. What is not done by then is done by the next: a cluster that answers slowly
// must not keep a worker from others.
const runTimeout = 3 * time.Minute

// fieldOwner owns the fields of all objects of add-ons.
const fieldOwner = client.FieldOwner("polder-addon")

// Reconciler reconciles ClusterAddons. All fields are needed.
type Reconciler struct {
	Client   client.Client // reads from a cache
	Live     client.Client // reads from the API server
	Releases *releases.Library
	Renderer *rendering.Pool
	Workload *workload.Clusters
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Interval time.Duration     // between corrections of manual changes
	Timeout  time.Duration     // after which a stage that waits is reported as stuck
	Poll     time.Duration     // between checks of what a stage waits for
	Limiter  *fairness.Limiter // for access to workload clusters

	lastApplies reconcile.Memory[client.ObjectKey, lastApply]
}

// scope is what one run works on.
type scope struct {
	cluster    *clusterv1.Cluster
	addon      *csv1.ClusterAddon // nil until there is one; see setAddon
	tracked    *reconcile.Tracked[*csv1.ClusterAddon]
	conditions reconcile.Conditions
	release    *csv1.ClusterStackRelease
	stack      *csv1.ClusterStack // of the release; may be nil
	preparing  bool               // the release is not yet that of the cluster's class
	content    *stack.Release
	workload   *workload.Cluster
	rendered   []stack.RenderedStage // of both runtime hooks; see renderAddons
	results    []apply.Result        // of what was applied in this run
	freeSlot   func()                // gives back the slot of the namespace, if there is one
}

// setAddon makes a ClusterAddon that was just read or created the one that the run works on.
func (s *scope) setAddon(o *csv1.ClusterAddon) {
	s.addon, s.tracked = o, reconcile.Track(o)
	s.conditions = reconcile.NewConditions(o, &o.Status.Conditions, csv1.ReasonReady)
}

// Reconcile brings the add-ons of the Cluster that req names closer to what is wanted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil {
		if apierrors.IsNotFound(err) {
			r.Workload.Forget(req.NamespacedName) // its ClusterAddon is gone by now, or soon
			r.lastApplies.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{cluster: c}
	s.freeSlot = func() {}
	// Called late: connectCluster replaces it.
	defer func() { s.freeSlot() }()
	limited, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	// Begun stages are applied again before others are run: a corrected value may be what they wait for.
	result, err := reconcile.Run(limited, s, r.findRelease, r.ensureAddon, r.checkNamespaceAllowed, r.loadContent,
		r.connectCluster, r.planStages, r.reapplyBegunStages, r.runStages, r.completeRelease, r.maintainObjects)
	if s.addon == nil {
		return reconcile.Finish(result, err, nil)
	}
	r.summarize(s)
	if result.RequeueAfter == 0 && err == nil &&
		meta.IsStatusConditionTrue(s.addon.Status.Conditions, csv1.ConditionReady) {
		result.RequeueAfter = wait.Jitter(r.Interval, 0.2)
	}
	// With ctx, which has no deadline yet: what was done must be written, also if the time of the run is up.
	return reconcile.Finish(result, err, r.writeChanges(ctx, s))
}

// writeChanges writes what has changed since the last write.
func (r *Reconciler) writeChanges(ctx context.Context, s *scope) error {
	s.setReadyCondition()
	return s.tracked.Write(ctx, r.Client)
}

// setReadyCondition summarises all conditions in Ready. It is never written without the others.
func (s *scope) setReadyCondition() metav1.Condition {
	o := s.addon
	c := s.conditions.Summarize(csv1.ConditionReady, csv1.ConditionClusterReady, csv1.ConditionApplied,
		csv1.ConditionHealthy)
	s.conditions.Set(c)
	o.Status.Ready = ptr.To(c.Status == metav1.ConditionTrue)
	about := advice.Object{
		Kind: "ClusterAddon", Meta: &o.ObjectMeta, Cluster: s.cluster.Name, Stage: advice.CurrentStage(o.Status.Stages),
		Stack: s.stack, Conditions: o.Status.Conditions,
	}
	if s.release != nil {
		about.Releases = []csv1.ClusterStackRelease{*s.release}
	}
	o.Status.Actor, o.Status.NextStep = advice.For(about)
	return c
}

// summarize ends a run: it records events for what has changed.
func (r *Reconciler) summarize(s *scope) {
	c, o := s.setReadyCondition(), s.addon
	old := meta.FindStatusCondition(s.tracked.Initial().Status.Conditions, csv1.ConditionReady)
	if old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return
	}
	// Events that differ in their note alone are counted as one, with the note of the first. With the release as
	// related object, those of two releases are two.
	var related runtime.Object = s.cluster
	if s.release != nil {
		related = s.release
	}
	switch {
	case c.Status == metav1.ConditionTrue:
		r.Events.Eventf(o, related, "Normal", csv1.ReasonReady, "Reconcile", "the add-ons of %s are there and healthy",
			o.Status.Release)
	case c.Reason == csv1.ReasonStageWaiting:
		r.Events.Eventf(o, related, "Normal", c.Reason, "Reconcile", "%s", c.Message)
		r.Events.Eventf(s.cluster, related, "Normal", c.Reason, "Reconcile", "%s",
			reconcile.TruncateMessage("add-ons: "+c.Message))
	case warningReasons[c.Reason]:
		r.Events.Eventf(o, related, "Warning", c.Reason, "Reconcile", "%s", c.Message)
		r.Events.Eventf(s.cluster, related, "Warning", c.Reason, "Reconcile", "%s",
			reconcile.TruncateMessage("add-ons: "+c.Message))
	}
}

// warningReasons are the reasons for which a Warning is recorded.
var warningReasons = map[string]bool{
	csv1.ReasonNotAllowed: true, csv1.ReasonInvalid: true, csv1.ReasonRefused: true, csv1.ReasonApplyFailed: true,
	csv1.ReasonStageTimedOut: true, csv1.ReasonConditionInvalid: true, csv1.ReasonUnreachable: true,
}
