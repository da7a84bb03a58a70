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
	next       time.Time
	ailing     []ailment
}

type ailment struct {
	ref  apply.Ref
	what string
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
	want, err := s.applier().Refs(values(wanted(all, s.hook())))
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
	key := client.ObjectKeyFromObject(s.cluster)
	r.mu.Lock()
	c := r.checked[key]
	r.mu.Unlock()
	var err error
	if c.uid != s.addon.UID || c.generation != s.cluster.Generation || c.digest != s.addon.Status.TargetDigest || time.Now().After(c.next) {
		c, err = r.correct(ctx, s)
	} else {
		c.ailing, err = ailing(ctx, s, c.ailing)
	}
	if err != nil {
		return r.explainLeft(s, err)
	}
	r.mu.Lock()
	if r.checked == nil {
		r.checked = map[client.ObjectKey]check{}
	}
	r.checked[key] = c
	r.mu.Unlock()
	s.set(csv1.ConditionApplied, "", fmt.Sprintf("all stages of %s are done", s.release.Name))
	if len(c.ailing) > 0 {
		s.set(csv1.ConditionHealthy, csv1.ReasonNotHealthy, sentence(c.ailing))
		return reconcile.Wait(r.Poll, "health")
	}
	s.set(csv1.ConditionHealthy, "", "all objects are healthy")
	return reconcile.Wait(wait.Jitter(time.Until(c.next), 0.1), "the next correction")
}

// correct applies all objects again, in the order of their stages, without their conditions.
func (r *Reconciler) correct(ctx context.Context, s *scope) (check, error) {
	c := check{uid: s.addon.UID, generation: s.cluster.Generation, digest: s.addon.Status.TargetDigest, next: time.Now().Add(r.Interval)}
	all, err := r.render(ctx, s)
	if err != nil {
		return c, err
	}
	if len(s.results) < objects(ofHook(all, s.hook())) { // else all of it was applied just now
		s.results = nil
		for _, st := range ofHook(all, s.hook()) {
			if st.Stage.Action == stack.ActionApply {
				st.Objects = slices.DeleteFunc(slices.Clone(st.Objects), isJob)
				if err := r.apply(ctx, s, st); err != nil {
					return c, fmt.Errorf("stage %s: %w", nameOf(st.Stage), err)
				}
			}
		}
	}
	if err := r.pruneStale(ctx, s); err != nil {
		return c, err
	}
	for _, res := range s.results {
		if ok, what := apply.Health(res.Object); !ok {
			c.ailing = append(c.ailing, ailment{res.Ref, what})
		}
	}
	return c, nil
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
		u, err := read(ctx, s.workload.Client, a.ref)
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
