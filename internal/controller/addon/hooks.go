package addon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// Annotations of Helm on objects that it applies at certain moments only, and ours.
const (
	hookWeight    = "helm.sh/hook-weight"
	hookDeletion  = "helm.sh/hook-delete-policy"
	hookSucceeded = "hook-succeeded"
	hookRun       = "clusterstack.x-k8s.io/hook-run" // for which run of which release it was made
)

// moment is when hooks of Helm are run: before or after the objects of their chart.
type moment struct{ install, upgrade string }

var (
	before = moment{"pre-install", "pre-upgrade"}
	after  = moment{"post-install", "post-upgrade"}
)

// event is Helm's name for a moment of the run.
func (m moment) event(s *scope) string {
	if s.addon.Status.Hook == stack.BeforeClusterUpgrade {
		return m.upgrade
	}
	return m.install
}

// hooksFor are the hooks of a stage for an event, in their order.
func hooksFor(st stack.RenderedStage, event string) []render.HelmHook {
	var out []render.HelmHook
	for _, h := range st.Hooks {
		if slices.Contains(h.Events, event) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b render.HelmHook) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Name(), b.Name()))
	})
	return out
}

func weight(h render.HelmHook) int {
	n, _ := strconv.Atoi(annotation(h, hookWeight)) // none is zero, as with Helm
	return n
}

func annotation(h render.HelmHook, key string) string {
	v, _, _ := unstructured.NestedString(h.Value, "metadata", "annotations", key)
	return v
}

// runHooks runs the hooks of a stage one after the other, each once for a run, and waits for each to end.
func (r *Reconciler) runHooks(ctx context.Context, s *scope, st stack.RenderedStage, m moment) error {
	event := m.event(s)
	for _, h := range hooksFor(st, event) {
		if err := r.runHook(ctx, s, h, runOf(s, st, event)); err != nil {
			return fmt.Errorf("hook %s (%s): %w", h.Object, event, err)
		}
	}
	return nil
}

// runOf names one run, so that a hook that was made for it is not made again, and an older one is.
func runOf(s *scope, st stack.RenderedStage, event string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.addon.UID), s.addon.Status.Release, s.addon.Status.TargetDigest, nameOf(st.Stage), event}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

func (r *Reconciler) runHook(ctx context.Context, s *scope, h render.HelmHook, run string) error {
	a := s.applier()
	u := (&unstructured.Unstructured{Object: h.Value}).DeepCopy()
	notes := u.GetAnnotations()
	notes[hookRun] = run
	u.SetAnnotations(notes)
	set, err := a.Prepare(ctx, []*unstructured.Unstructured{u})
	if err != nil {
		return err
	}
	ref := set.Refs()[0]
	live, err := read(ctx, s.workload.Client, ref)
	if err != nil {
		return err
	}
	if live != nil && live.GetAnnotations()[hookRun] != run {
		if err := r.prune(ctx, s, []apply.Ref{ref}); err != nil {
			return err
		}
		live = nil // it was of an earlier run
	}
	if live == nil {
		s.addon.Status.Resources, _ = apply.Intend(s.addon.Status.Resources, set)
		if err := r.write(ctx, s); err != nil {
			return err
		}
		results := a.Apply(ctx, set, func(apply.Ref) bool { return false })
		s.addon.Status.Resources = apply.Record(s.addon.Status.Resources, results, nil)
		if err := apply.Failed(results); err != nil {
			return err
		}
		live = results[0].Object
	}
	if ok, message := ended(live); !ok {
		return &notYet{fmt.Sprintf("hook %s: %s", h.Object, message)}
	}
	return nil
}

// ended says whether a hook has done its work: a pod must have come to its end, anything else be healthy.
func ended(live *unstructured.Unstructured) (ok bool, message string) {
	if live.GetKind() == "Pod" && live.GroupVersionKind().Group == "" {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Succeeded", fmt.Sprintf("it is %s", cmp.Or(phase, "Pending"))
	}
	return apply.Health(live)
}

// read is an object as it is in the cluster; nil if it is not.
func read(ctx context.Context, c client.Client, ref apply.Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind})
	err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// cleanUp deletes hooks that Helm would delete after their success. Only now nobody asks any more whether
// they were run.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope, i int) error {
	st, err := r.renderedStage(ctx, s, i)
	if err != nil || st.Stage.Action == stack.ActionDelete {
		return err
	}
	var done []render.Object
	for _, m := range []moment{before, after} {
		for _, h := range hooksFor(st, m.event(s)) {
			if strings.Contains(annotation(h, hookDeletion), hookSucceeded) {
				done = append(done, h.Object)
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := r.write(ctx, s); err != nil { // that the stage is done
		return err
	}
	refs, err := s.applier().Refs(values(done))
	if err != nil {
		return err
	}
	s.addon.Status.Resources = apply.Record(s.addon.Status.Resources, nil, s.applier().Prune(ctx, refs))
	return nil // what is still there is pruned with the rest
}
