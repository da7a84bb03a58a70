package clusteraddon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// Annotations of Helm hooks, and ours.
const (
	helmHookWeightAnnotation       = "helm.sh/hook-weight"
	helmHookDeletePolicyAnnotation = "helm.sh/hook-delete-policy"
	helmHookSucceeded              = "hook-succeeded"
	helmHookRunAnnotation          = "clusterstack.x-k8s.io/hook-run" // see helmHookRunID
)

// helmHookPoint is when Helm hooks are run: before or after the objects of their chart.
type helmHookPoint struct{ install, upgrade string }

var (
	beforeObjects = helmHookPoint{"pre-install", "pre-upgrade"}
	afterObjects  = helmHookPoint{"post-install", "post-upgrade"}
)

// helmEvent returns Helm's name for the point: a stage either installs or upgrades its chart.
func (m helmHookPoint) helmEvent(ss *csv1.StageStatus) string {
	if ptr.Deref(ss.Install, false) {
		return m.install
	}
	return m.upgrade
}

// detectInstall finds out, before a stage acts for the first time, whether its chart is new in the cluster. It is kept
// in the stage's status, since the answer changes once objects are applied.
func (r *Reconciler) detectInstall(ctx context.Context, s *scope, i int, ss *csv1.StageStatus) error {
	st, err := r.renderedStage(ctx, s, i)
	if err != nil {
		return err
	}
	refs, err := s.newApplier().Refs(rendering.ToUnstructured(st.Objects))
	if err != nil {
		return err
	}
	ss.Install = ptr.To(!apply.HasAny(s.addon.Status.Resources, refs))
	return nil
}

// helmHooksFor returns the Helm hooks of a stage for an event, in the order of their weights and names.
func helmHooksFor(st stack.RenderedStage, event string) []render.HelmHook {
	var out []render.HelmHook
	for _, h := range st.HelmHooks {
		if slices.Contains(h.Events, event) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b render.HelmHook) int {
		return cmp.Or(cmp.Compare(weightOf(a), weightOf(b)), cmp.Compare(a.Name(), b.Name()))
	})
	return out
}

// weightOf returns the weight of a Helm hook.
func weightOf(h render.HelmHook) int {
	n, _ := strconv.Atoi(annotationOf(h, helmHookWeightAnnotation)) // without a valid weight it is zero, as with Helm
	return n
}

// annotationOf returns an annotation of a Helm hook; "" if it has none.
func annotationOf(h render.HelmHook, key string) string {
	v, _, _ := unstructured.NestedString(h.Value, "metadata", "annotations", key)
	return v
}

// runHelmHooks runs the Helm hooks of a stage one after the other, each once for a run, and waits for each to end.
func (r *Reconciler) runHelmHooks(ctx context.Context, s *scope, st stack.RenderedStage, ss *csv1.StageStatus,
	m helmHookPoint) error {
	event := m.helmEvent(ss)
	for _, h := range helmHooksFor(st, event) {
		run, err := helmHookRunID(s, st, event, h)
		if err != nil {
			return err
		}
		if slices.Contains(ss.EndedHooks, run) {
			continue
		}
		if err := r.runHelmHook(ctx, s, h, run); err != nil {
			return fmt.Errorf("hook %s (%s): %w", h.Object, event, err)
		}
		ss.EndedHooks = append(ss.EndedHooks, run)
	}
	return nil
}

// helmHookRunID returns an ID for one run of a Helm hook. An object that was made for this run is not made again, and
// one that was made for another release, or with other values, is.
func helmHookRunID(s *scope, st stack.RenderedStage, event string, h render.HelmHook) (string, error) {
	content, err := json.Marshal(h.Value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.addon.UID), s.addon.Status.Release,
		s.addon.Status.TargetDigest, stageName(st.Stage), event, string(content)}, "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

// runHelmHook creates the object of a Helm hook, unless it was created for this run, and waits for its end.
func (r *Reconciler) runHelmHook(ctx context.Context, s *scope, h render.HelmHook, run string) error {
	a := s.newApplier()
	u := (&unstructured.Unstructured{Object: h.Value}).DeepCopy()
	annotations := u.GetAnnotations()
	annotations[helmHookRunAnnotation] = run
	u.SetAnnotations(annotations)
	set, err := a.Prepare(ctx, []*unstructured.Unstructured{u})
	if err != nil {
		return err
	}
	ref := set.Refs()[0]
	live, err := s.readObject(ctx, ref)
	if err != nil {
		return err
	}
	if live != nil && (live.GetAnnotations()[helmHookRunAnnotation] != run || r.needsRetry(live)) {
		if err := r.prune(ctx, s, []apply.Ref{ref}); err != nil {
			return err
		}
		live = nil // it was of an earlier run, or failed
	}
	if live == nil {
		if err := r.recordIntent(ctx, s, set); err != nil {
			return err
		}
		// None is trusted to be ours, so it is read once more: somebody else may have made it since.
		results := a.Apply(ctx, set, func(apply.Ref) bool { return false })
		s.addon.Status.Resources = apply.RecordResults(s.addon.Status.Resources, results, nil)
		if err := apply.JoinErrors(results); err != nil {
			return err
		}
		live = results[0].Object
	}
	if ok, message := isCompleted(live); !ok {
		if hasFailed(live) {
			message += fmt.Sprintf("; it is run again %s after it was begun", r.Interval)
		}
		return &notReadyError{message}
	}
	return nil
}

// needsRetry reports whether a Helm hook has failed, and long enough ago: what it needs may be there by now.
func (r *Reconciler) needsRetry(live *unstructured.Unstructured) bool {
	return hasFailed(live) && r.Clock.Since(live.GetCreationTimestamp().Time) > r.Interval
}

// hasFailed reports whether a Job or a Pod has ended without success.
func hasFailed(live *unstructured.Unstructured) bool {
	if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); live.GetKind() == "Pod" &&
		phase == "Failed" {
		return true
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return live.GetKind() == "Job" && slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Failed" && m["status"] == "True"
	})
}

// isCompleted reports whether a Helm hook has done its work: a Pod must have succeeded, anything else must be healthy.
func isCompleted(live *unstructured.Unstructured) (ok bool, message string) {
	if live.GetKind() == "Pod" && live.GroupVersionKind().Group == "" {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Succeeded", fmt.Sprintf("it is %s", cmp.Or(phase, "Pending"))
	}
	return apply.Health(live)
}

// readObject reads an object of the workload cluster; nil if it is not there.
func (s *scope) readObject(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	u, err := s.newApplier().Get(ctx, ref)
	return u, stripAPIStatus(err)
}

// stripAPIStatus turns an error of the workload cluster into a plain text. Its API status must not be taken for the
// plane's: above all, a conflict there is no reason to requeue at once.
func stripAPIStatus(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// deleteSucceededHelmHooks deletes the objects of Helm hooks that Helm would delete after their success. It waits until
// the stage is done: before, their objects show that the hooks were run.
func (r *Reconciler) deleteSucceededHelmHooks(ctx context.Context, s *scope, i int, ss *csv1.StageStatus) error {
	st, err := r.renderedStage(ctx, s, i)
	if err != nil || st.Stage.Action == stack.ActionDelete {
		return err
	}
	var done []render.Object
	for _, m := range []helmHookPoint{beforeObjects, afterObjects} {
		for _, h := range helmHooksFor(st, m.helmEvent(ss)) {
			if strings.Contains(annotationOf(h, helmHookDeletePolicyAnnotation), helmHookSucceeded) {
				done = append(done, h.Object)
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	// First write that the stage is done: if we die in between, the hooks would be run again.
	if err := r.writeChanges(ctx, s); err != nil {
		return err
	}
	refs, err := s.newApplier().Refs(rendering.ToUnstructured(done))
	if err != nil {
		return err
	}
	s.addon.Status.Resources = apply.RecordResults(s.addon.Status.Resources, nil, s.newApplier().Prune(ctx, refs))
	return nil // objects that are still there are pruned with the rest
}
