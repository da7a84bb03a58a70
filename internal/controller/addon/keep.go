package addon

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
	"github.com/polder-kaas/polder/internal/controller/content"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// check is when all objects of a cluster were last applied, and what was not healthy since. Only work is
// spared by it: of what is not remembered, everything is looked at again.
type check struct {
	uid        types.UID // of the ClusterAddon
	generation int64     // of the Cluster
	digest     string    // of the release
	partly     bool      // only stages that were begun
	next       time.Time
	ailing     []ailment
	since      time.Time // when something was first found not healthy
}

type ailment struct {
	ref  apply.Ref
	what string
}

// remember is for objects that were just applied; they are again after a while.
func (r *Reconciler) remember(s *scope, c check, interval time.Duration) check {
	c.uid, c.generation, c.digest, c.next = s.addon.UID, s.cluster.Generation, s.addon.Status.TargetDigest, time.Now().Add(interval)
	r.keep(s, c)
	return c
}

// keep puts down a check as it is.
func (r *Reconciler) keep(s *scope, c check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checked == nil {
		r.checked = map[client.ObjectKey]check{}
	}
	r.checked[client.ObjectKeyFromObject(s.cluster)] = c
}

// recall is what was remembered; ok says that it still holds.
func (r *Reconciler) recall(s *scope) (c check, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.checked[client.ObjectKeyFromObject(s.cluster)]
	return c, c.uid == s.addon.UID && c.generation == s.cluster.Generation && c.digest == s.addon.Status.TargetDigest && time.Now().Before(c.next)
}

func (r *Reconciler) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.checked, key)
}

// pruned deletes what the stages have left over: objects of the inventory that the release does not have.
// Then the add-ons of the release are applied.
func (r *Reconciler) pruned(ctx context.Context, s *scope) error {
	st := &s.addon.Status
	if st.Release == st.Target {
		return nil
	}
	if err := r.pruneStale(ctx, s); err != nil {
		return r.explainLeft(s, err)
	}
	was := st.Release
	st.Release = st.Target
	s.set(csv1.ConditionApplied, "", fmt.Sprintf("all stages of %s are done", s.release.Name))
	r.Events.Eventf(s.addon, s.cluster, "Normal", "StagesDone", "Reconcile", "all stages of %s are done%s", st.Release, from(was))
	return nil
}

func from(release string) string {
	if release == "" {
		return ""
	}
	return ", which follows " + release
}

// explainLeft says what goes wrong after all stages are done.
func (r *Reconciler) explainLeft(s *scope, err error) error {
	var wait *notYet
	switch {
	case reconcile.Waits(err): // it was explained where more is known of it
		return err
	case errors.As(err, &wait):
		s.set(csv1.ConditionApplied, csv1.ReasonStageWaiting, "after all stages: "+err.Error())
		return reconcile.Wait(r.Poll, "%v", err)
	}
	s.set(csv1.ConditionApplied, failure(err), err.Error())
	return err
}

// pruneStale deletes objects of the inventory that the release does not have.
func (r *Reconciler) pruneStale(ctx context.Context, s *scope) error {
	all, err := r.render(ctx, s)
	if err != nil {
		return err
	}
	want, err := s.applier().Refs(content.ToUnstructured(wanted(all, s.hook())))
	if err != nil {
		return err
	}
	return r.prune(ctx, s, apply.Without(s.addon.Status.Resources, want))
}

// wanted are all objects that may be in the cluster: those of all stages that apply something, on either
// hook, and their Helm hooks, but not those that a stage of this hook has deleted.
func wanted(all []stack.RenderedStage, hook string) (out []render.Object) {
	deleted := map[string]bool{}
	for _, st := range ofHook(all, hook) {
		deleted[st.Stage.Name] = st.Stage.Action == stack.ActionDelete // the last one counts
	}
	for _, st := range all {
		if st.Stage.Action == stack.ActionDelete || deleted[st.Stage.Name] {
			continue
		}
		out = append(out, st.Objects...)
		for _, h := range st.Hooks {
			out = append(out, h.Object)
		}
	}
	return out
}

// kept applies everything again from time to time, or when the cluster's values have changed, and looks
// after what is not healthy.
func (r *Reconciler) kept(ctx context.Context, s *scope) error {
	c, ok := r.recall(s)
	since := c.since
	var err error
	if !ok || c.partly {
		c, err = r.correct(ctx, s)
	} else {
		c.ailing, err = ailing(ctx, s, c.ailing)
	}
	if err != nil {
		return r.explainLeft(s, err)
	}
	s.addon.Status.ClusterGeneration = s.cluster.Generation
	c.since = firstOf(since, c.ailing)
	r.keep(s, c)
	s.set(csv1.ConditionApplied, "", fmt.Sprintf("all stages of %s are done", s.release.Name))
	if len(c.ailing) > 0 {
		s.set(csv1.ConditionHealthy, csv1.ReasonNotHealthy, sentence(c.ailing))
		return reconcile.Wait(r.healthPoll(c), "health")
	}
	s.set(csv1.ConditionHealthy, "", "all objects are healthy")
	return reconcile.Wait(wait.Jitter(time.Until(c.next), 0.1), "the next correction")
}

// firstOf is when something was first found not healthy.
func firstOf(since time.Time, is []ailment) time.Time {
	switch {
	case len(is) == 0:
		return time.Time{}
	case since.IsZero():
		return time.Now()
	}
	return since
}

// healthPoll is how soon to look again at what is not healthy: the longer it is not, the later.
func (r *Reconciler) healthPoll(c check) time.Duration {
	return max(r.Poll, min(time.Since(c.since)/10, time.Minute))
}

// correct applies all objects again, in the order of their stages, without their conditions.
func (r *Reconciler) correct(ctx context.Context, s *scope) (check, error) {
	var c check
	all, err := r.render(ctx, s)
	if err != nil {
		return c, err
	}
	if len(s.results) < objects(ofHook(all, s.hook())) { // else all of it was applied just now
		s.results = nil
		for _, st := range ofHook(all, s.hook()) {
			if st.Stage.Action == stack.ActionApply {
				st.Objects = withoutJobs(st.Objects)
				if err := r.apply(ctx, s, st); err != nil {
					return c, fmt.Errorf("stage %s: %w", nameOf(st.Stage), err)
				}
			}
		}
	}
	if err := r.pruneStale(ctx, s); err != nil {
		return c, err
	}
	applied := map[apply.Key]bool{}
	for _, res := range s.results {
		applied[res.Ref.Key()] = true
		if ok, what := apply.Health(res.Object); !ok {
			c.ailing = append(c.ailing, ailment{res.Ref, what})
		}
	}
	others, err := s.others(ctx, all, applied)
	if err != nil {
		return c, err
	}
	c.ailing = append(c.ailing, others...)
	return r.remember(s, c, r.Interval), nil
}

// others looks at what is in the cluster and was not applied now: Jobs, which are done once, and objects of
// stages that only new clusters go through. What of them should be there and is not, is not healthy.
func (s *scope) others(ctx context.Context, all []stack.RenderedStage, applied map[apply.Key]bool) (is []ailment, err error) {
	refs, err := s.applier().Refs(content.ToUnstructured(lasting(all)))
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
		u, err := s.read(ctx, ref)
		switch {
		case err != nil:
			return is, err
		case u == nil && lasts[ref.Key()]:
			is = append(is, ailment{ref, "it is gone, and is made by a stage for new clusters only"})
		case u != nil:
			if ok, what := apply.Health(u); !ok {
				is = append(is, ailment{ref, what})
			}
		}
	}
	return is, nil
}

// lasting are objects that stay once they are applied.
func lasting(all []stack.RenderedStage) (out []render.Object) {
	for _, st := range all {
		if st.Stage.Action == stack.ActionApply {
			out = append(out, withoutJobs(st.Objects)...)
		}
	}
	return out
}

func withoutJobs(objects []render.Object) []render.Object {
	return slices.DeleteFunc(slices.Clone(objects), isJob)
}

// isJob is for what was done once and would be done again if it were applied after it cleaned up behind
// itself.
func isJob(o render.Object) bool { return o.Group() == "batch" && o.Kind() == "Job" }

// objects is how many are applied by stages.
func objects(stages []stack.RenderedStage) (n int) {
	for _, st := range stages {
		if st.Stage.Action == stack.ActionApply {
			n += len(st.Objects)
		}
	}
	return n
}

// ailing looks again at what was not healthy.
func ailing(ctx context.Context, s *scope, was []ailment) (is []ailment, err error) {
	for _, a := range was {
		u, err := s.read(ctx, a.ref)
		if err != nil {
			return nil, err
		}
		if u == nil {
			is = append(is, ailment{a.ref, "it is gone"})
		} else if ok, what := apply.Health(u); !ok {
			is = append(is, ailment{a.ref, what})
		}
	}
	return is, nil
}

// few is how many objects a sentence names.
const few = 3

func sentence(all []ailment) string {
	var out []string
	for i, a := range all {
		if i == few {
			out = append(out, fmt.Sprintf("and %d more", len(all)-few))
			break
		}
		out = append(out, fmt.Sprintf("%s: %s", a.ref, a.what))
	}
	return strings.Join(out, "; ")
}
