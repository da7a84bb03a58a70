package reconciletest

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manualChange is something that somebody does by hand to an object. It returns whether there was anything to do.
type manualChange struct {
	name  string
	apply func(l *scenario, ctx context.Context, key string, o *unstructured.Unstructured) (bool, error)
}

var manualChanges = []manualChange{
	{"labels", (*scenario).stripLabels},
	{"owner references", (*scenario).stripOwners},
	{"finalizers", (*scenario).stripFinalizers},
	{"status", (*scenario).stripStatus},
	{"content", (*scenario).edit},
	{"everything", (*scenario).remove},
}

func strippedCases(h *harness) []testCase { return []testCase{{"by hand", h.applyManualChanges}} }

func (h *harness) applyManualChanges(ctx context.Context) (string, error) {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return "", err
	}
	var done []string
	err = l.waitUntilSettled(ctx, h.subject.Timeout)
	if err == nil {
		done, err = l.stripAll(ctx)
	}
	return fmt.Sprintf("taken away and restored: %q", done), l.finish(ctx, err)
}

// stripAll makes one change after the other and waits each time until the subject has undone it.
func (l *scenario) stripAll(ctx context.Context) (done []string, err error) {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return nil, err
	}
	for _, key := range s.keys() {
		for _, st := range manualChanges {
			did, err := l.stripOne(ctx, key, st)
			if err != nil {
				return done, fmt.Errorf("somebody took %s of %s away: %w", st.name, key, err)
			}
			if did {
				done = append(done, st.name+" of "+key)
			}
		}
	}
	return done, nil
}

func (l *scenario) stripOne(ctx context.Context, key string, st manualChange) (bool, error) {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return false, err
	}
	o := s[key]
	did, err := st.apply(l, ctx, key, &o)
	if err != nil || !did {
		return did, err
	}
	return true, l.waitUntilSettled(ctx, l.h.subject.Timeout)
}

func (l *scenario) stripLabels(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.inputs[key]
	gone := map[string]any{}
	for k := range o.GetLabels() {
		if _, ok := given.GetLabels()[k]; !ok {
			gone[k] = nil
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	return true, l.h.patch(ctx, o, map[string]any{"metadata": map[string]any{"labels": gone}})
}

func (l *scenario) stripOwners(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.inputs[key]
	if len(o.GetOwnerReferences()) <= len(given.GetOwnerReferences()) {
		return false, nil
	}
	return true, l.h.patch(ctx, o, map[string]any{
		"metadata": map[string]any{"ownerReferences": given.GetOwnerReferences()},
	})
}

func (l *scenario) stripFinalizers(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.inputs[key]
	if slices.Equal(o.GetFinalizers(), given.GetFinalizers()) {
		return false, nil
	}
	return true, l.h.patch(ctx, o, map[string]any{"metadata": map[string]any{"finalizers": given.GetFinalizers()}})
}

// stripStatus removes the status, as happens to objects that are moved or restored: what is in a status must not
// be needed to write it.
func (l *scenario) stripStatus(ctx context.Context, _ string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := o.Object["status"]; !ok || !l.h.isOwn(o) {
		return false, nil
	}
	err := l.h.client.Status().Patch(ctx, o.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`)))
	return true, err
}

// edit changes the first string in an object of the subject that the API server allows to be changed.
func (l *scenario) edit(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := l.inputs[key]; ok {
		return false, nil // the inputs are the user's to change
	}
	for _, part := range []string{"data", "spec"} {
		for _, changed := range stringEdits(o.Object[part]) {
			err := l.h.patch(ctx, o, map[string]any{part: changed})
			if err == nil {
				return true, nil
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) {
				return false, err
			}
		}
	}
	return false, nil
}

// stringEdits returns merge patches that change or remove one string each.
func stringEdits(v any) (all []any) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, k := range sortedKeys(m) {
		if s, ok := m[k].(string); ok {
			all = append(all, map[string]any{k: s + "x"}, map[string]any{k: nil})
		}
		for _, inner := range stringEdits(m[k]) {
			all = append(all, map[string]any{k: inner})
		}
	}
	return all
}

// remove deletes an object that the subject has created.
func (l *scenario) remove(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := l.inputs[key]; ok {
		return false, nil
	}
	if err := l.h.client.Delete(ctx, o.DeepCopy()); err != nil || l.h.subject.AfterRemoval == nil {
		return true, err
	}
	return true, l.h.subject.AfterRemoval(ctx, l.h.client, l.namespace)
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
