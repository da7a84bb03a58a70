package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// lastApply is when all objects of a cluster were last applied, and which were not healthy since. It only spares work:
// if it is lost, everything is applied and checked again.
type lastApply struct {
	uid            types.UID // of the ClusterAddon
	generation     int64     // of the Cluster
	digest         string    // of the release
	partial        bool      // only stages that were begun were applied
	nextApply      time.Time
	unhealthy      []unhealthyObject
	unhealthySince time.Time // when an object was first found not healthy
}

// unhealthyObject is an object that is not healthy, and why.
type unhealthyObject struct {
	ref     apply.Ref
	message string
}

// recordApply remembers that objects were just applied. They are applied again after the interval.
func (r *Reconciler) recordApply(s *scope, c lastApply, interval time.Duration) lastApply {
	c.uid, c.generation, c.digest = s.addon.UID, s.cluster.Generation, s.addon.Status.TargetDigest
	c.nextApply = r.Clock.Now().Add(interval)
	r.lastApplies.Store(client.ObjectKeyFromObject(s.cluster), c)
	return c
}

// loadLastApply returns what is remembered. ok reports whether it still holds.
func (r *Reconciler) loadLastApply(s *scope) (c lastApply, ok bool) {
	c, _ = r.lastApplies.Load(client.ObjectKeyFromObject(s.cluster))
	same := c.uid == s.addon.UID && c.generation == s.cluster.Generation && c.digest == s.addon.Status.TargetDigest
	return c, same && r.Clock.Now().Before(c.nextApply)
}

// completeRelease deletes what the stages have left over: objects of the inventory that the release does not have.
// After that, the cluster is at the release.
func (r *Reconciler) completeRelease(ctx context.Context, s *scope) error {
	st := &s.addon.Status
	if st.Release == st.Target {
		return nil
	}
	if err := r.pruneStale(ctx, s); err != nil {
		return r.explainAfterStages(s, err)
	}
	was := st.Release
	// Only now: with st.Release set, the upgrade is let go on, and the next release runs the stages for upgrades.
	st.Release = st.Target
	s.conditions.SetTrue(csv1.ConditionApplied, fmt.Sprintf("all stages of %s are done", s.release.Name))
	r.Events.Eventf(s.addon, s.cluster, "Normal", "StagesDone", "Reconcile", "all stages of %s are done%s", st.Release,
		describePrevious(was))
	return nil
}

// describePrevious returns the release before as the end of a sentence.
func describePrevious(release string) string {
	if release == "" {
		return ""
	}
	return ", which follows " + release
}

// explainAfterStages says in the status what goes wrong after all stages are done.
func (r *Reconciler) explainAfterStages(s *scope, err error) error {
	var notReady *notReadyError
	switch {
	case reconcile.IsWait(err): // the condition was set where more is known of it
		return err
	case errors.As(err, &notReady):
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonStageWaiting, "after all stages: "+err.Error())
		return reconcile.Wait(r.Poll, "%v", err)
	}
	s.conditions.SetFalse(csv1.ConditionApplied, failureReason(err), err.Error())
	return err
}

// pruneStale deletes objects of the inventory that the release does not have.
func (r *Reconciler) pruneStale(ctx context.Context, s *scope) error {
	all, err := r.renderAddons(ctx, s)
	if err != nil {
		return err
	}
	want, err := s.newApplier().Refs(rendering.ToUnstructured(expectedObjects(all, s.runtimeHook())))
	if err != nil {
		return err
	}
	return r.prune(ctx, s, apply.StaleRefs(s.addon.Status.Resources, want))
}

// expectedObjects returns all objects that may be in the cluster: those of all stages that apply something, of either
// runtime hook, and their Helm hooks, but not those that a stage of this runtime hook has deleted.
func expectedObjects(all []stack.RenderedStage, hook string) (out []render.Object) {
	deleted := map[string]bool{}
	for _, st := range stagesOfRuntimeHook(all, hook) {
		deleted[st.Stage.Name] = st.Stage.Action == stack.ActionDelete // the last stage of a name counts
	}
	for _, st := range all {
		if st.Stage.Action == stack.ActionDelete || deleted[st.Stage.Name] {
			continue
		}
		out = append(out, st.Objects...)
		for _, h := range st.HelmHooks {
			out = append(out, h.Object)
		}
	}
	return out
}

// maintainObjects applies everything again from time to time, or when the cluster's values have changed, and checks
// objects that are not healthy.
func (r *Reconciler) maintainObjects(ctx context.Context, s *scope) error {
	c, ok := r.loadLastApply(s)
	since := c.unhealthySince
	var err error
	// A partial apply, from before the stages were done, leaves out the rest.
	if !ok || c.partial {
		c, err = r.reapplyAll(ctx, s)
	} else {
		c.unhealthy, err = recheckHealth(ctx, s, c.unhealthy)
	}
	if err != nil {
		return r.explainAfterStages(s, err)
	}
	// The WorkloadCluster is not ready before its add-ons are those of this generation.
	s.addon.Status.ClusterGeneration = s.cluster.Generation
	c.unhealthySince = firstUnhealthyTime(since, r.Clock.Now(), c.unhealthy)
	r.lastApplies.Store(client.ObjectKeyFromObject(s.cluster), c)
	s.conditions.SetTrue(csv1.ConditionApplied, fmt.Sprintf("all stages of %s are done", s.release.Name))
	if len(c.unhealthy) > 0 {
		s.conditions.SetFalse(csv1.ConditionHealthy, csv1.ReasonNotHealthy, describeUnhealthy(c.unhealthy))
		return reconcile.Wait(r.healthPollInterval(c), "health")
	}
	s.conditions.SetTrue(csv1.ConditionHealthy, "all objects are healthy")
	return reconcile.Wait(wait.Jitter(c.nextApply.Sub(r.Clock.Now()), 0.1), "the next correction")
}

// firstUnhealthyTime returns when an object was first found not healthy.
func firstUnhealthyTime(since, now time.Time, is []unhealthyObject) time.Time {
	switch {
	case len(is) == 0:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// healthPollInterval returns how soon unhealthy objects are checked again: the longer they are so, the later.
func (r *Reconciler) healthPollInterval(c lastApply) time.Duration {
	return max(r.Poll, min(r.Clock.Since(c.unhealthySince)/10, time.Minute))
}

// reapplyAll applies all objects again, in the order of their stages, without waiting for conditions.
func (r *Reconciler) reapplyAll(ctx context.Context, s *scope) (lastApply, error) {
	var c lastApply
	all, err := r.renderAddons(ctx, s)
	if err != nil {
		return c, err
	}
	// Otherwise this run has just applied all of them.
	if len(s.results) < countObjects(stagesOfRuntimeHook(all, s.runtimeHook())) {
		s.results = nil
		for _, st := range stagesOfRuntimeHook(all, s.runtimeHook()) {
			if st.Stage.Action == stack.ActionApply {
				st.Objects = withoutJobs(st.Objects)
				if err := r.applyStage(ctx, s, st); err != nil {
					return c, fmt.Errorf("stage %s: %w", stageName(st.Stage), err)
				}
			}
		}
	}
	// Only now: what replaces the stale objects is there.
	if err := r.pruneStale(ctx, s); err != nil {
		return c, err
	}
	applied := map[apply.Key]bool{}
	for _, res := range s.results {
		applied[res.Ref.Key()] = true
		if ok, what := apply.Health(res.Object); !ok {
			c.unhealthy = append(c.unhealthy, unhealthyObject{res.Ref, what})
		}
	}
	others, err := s.checkUnappliedObjects(ctx, all, applied)
	if err != nil {
		return c, err
	}
	c.unhealthy = append(c.unhealthy, others...)
	return r.recordApply(s, c, r.Interval), nil
}

// checkUnappliedObjects checks objects that are in the cluster and were not applied now: Jobs, which run once, and
// objects of stages that only new clusters go through. One of the latter that is missing is not healthy.
func (s *scope) checkUnappliedObjects(ctx context.Context, all []stack.RenderedStage,
	applied map[apply.Key]bool) (is []unhealthyObject, err error) {
	refs, err := s.newApplier().Refs(rendering.ToUnstructured(permanentObjects(all)))
	if err != nil {
		return nil, err
	}
	lasts := map[apply.Key]bool{}
	for _, ref := range refs {
		lasts[ref.Key()] = true
	}
	for _, r := range s.addon.Status.Resources {
		ref := apply.InventoryRef(r)
		if applied[ref.Key()] {
			continue
		}
		u, err := s.readObject(ctx, ref)
		switch {
		case err != nil:
			return is, err
		case u == nil && lasts[ref.Key()]:
			is = append(is, unhealthyObject{ref, "it is gone, and is made by a stage for new clusters only"})
		case u != nil:
			if ok, what := apply.Health(u); !ok {
				is = append(is, unhealthyObject{ref, what})
			}
		}
	}
	return is, nil
}

// permanentObjects returns the objects that stay once they are applied.
func permanentObjects(all []stack.RenderedStage) (out []render.Object) {
	for _, st := range all {
		if st.Stage.Action == stack.ActionApply {
			out = append(out, withoutJobs(st.Objects)...)
		}
	}
	return out
}

// withoutJobs returns all objects except Jobs.
func withoutJobs(objects []render.Object) []render.Object {
	return slices.DeleteFunc(slices.Clone(objects), isJob)
}

// isJob reports whether an object is a Job: one that has run and has removed itself would run again if it were applied
// again.
func isJob(o render.Object) bool { return o.Group() == "batch" && o.Kind() == "Job" }

// countObjects returns how many objects stages apply.
func countObjects(stages []stack.RenderedStage) (n int) {
	for _, st := range stages {
		if st.Stage.Action == stack.ActionApply {
			n += len(st.Objects)
		}
	}
	return n
}

// recheckHealth checks again the objects that were not healthy.
func recheckHealth(ctx context.Context, s *scope, was []unhealthyObject) (is []unhealthyObject, err error) {
	for _, a := range was {
		u, err := s.readObject(ctx, a.ref)
		if err != nil {
			return nil, err
		}
		if u == nil {
			is = append(is, unhealthyObject{a.ref, "it is gone"})
		} else if ok, what := apply.Health(u); !ok {
			is = append(is, unhealthyObject{a.ref, what})
		}
	}
	return is, nil
}

// maxNamedObjects is how many objects a message names.
const maxNamedObjects = 3

// describeUnhealthy lists unhealthy objects for a condition message.
func describeUnhealthy(all []unhealthyObject) string {
	var out []string
	for i, a := range all {
		if i == maxNamedObjects {
			out = append(out, fmt.Sprintf("and %d more", len(all)-maxNamedObjects))
			break
		}
		out = append(out, fmt.Sprintf("%s: %s", a.ref, a.message))
	}
	return strings.Join(out, "; ")
}
