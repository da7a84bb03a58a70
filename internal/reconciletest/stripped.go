package reconciletest

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// strip is one thing somebody does by hand to an object. It says whether there was anything to do.
type strip struct {
	name string
	do   func(l *life, ctx context.Context, key string, o *unstructured.Unstructured) (bool, error)
}

var strips = []strip{
	{"labels", (*life).stripLabels},
	{"owner references", (*life).stripOwners},
	{"finalizers", (*life).stripFinalizers},
	{"status", (*life).stripStatus},
	{"content", (*life).edit},
	{"everything", (*life).remove},
}

func strippedCases(h *harness) []testCase { return []testCase{{"by hand", h.strip}} }

func (h *harness) strip(ctx context.Context) (string, error) {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return "", err
	}
	var done []string
	err = l.settle(ctx, h.subject.Timeout)
	if err == nil {
		done, err = l.stripAll(ctx)
	}
	return fmt.Sprintf("taken away and restored: %q", done), l.finish(ctx, err)
}

// stripAll takes one thing after the other away and waits each time until it is back.
func (l *life) stripAll(ctx context.Context) (done []string, err error) {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return nil, err
	}
	for _, key := range s.keys() {
		for _, st := range strips {
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

func (l *life) stripOne(ctx context.Context, key string, st strip) (bool, error) {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return false, err
	}
	o := s[key]
	did, err := st.do(l, ctx, key, &o)
	if err != nil || !did {
		return did, err
	}
	return true, l.settle(ctx, l.h.subject.Timeout)
}

func (l *life) stripLabels(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.given[key]
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

func (l *life) stripOwners(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.given[key]
	if len(o.GetOwnerReferences()) <= len(given.GetOwnerReferences()) {
		return false, nil
	}
	return true, l.h.patch(ctx, o, map[string]any{"metadata": map[string]any{"ownerReferences": given.GetOwnerReferences()}})
}

func (l *life) stripFinalizers(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	given := l.given[key]
	if slices.Equal(o.GetFinalizers(), given.GetFinalizers()) {
		return false, nil
	}
	return true, l.h.patch(ctx, o, map[string]any{"metadata": map[string]any{"finalizers": given.GetFinalizers()}})
}

// stripStatus is what happens to objects that are moved or restored: what is in a status must not be
// needed to write it.
func (l *life) stripStatus(ctx context.Context, _ string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := o.Object["status"]; !ok || !l.h.isOwn(o) {
		return false, nil
	}
	err := l.h.client.Status().Patch(ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`)))
	return true, err
}

// edit changes the first string in what the subject made that the API server lets be changed.
func (l *life) edit(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := l.given[key]; ok {
		return false, nil // the inputs are the user's to change
	}
	for _, part := range []string{"data", "spec"} {
		for _, changed := range edits(o.Object[part]) {
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

// edits are merge patches that change one string each.
func edits(v any) (all []any) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, k := range sortedKeys(m) {
		if s, ok := m[k].(string); ok {
			all = append(all, map[string]any{k: s + "x"}, map[string]any{k: nil})
		}
		for _, inner := range edits(m[k]) {
			all = append(all, map[string]any{k: inner})
		}
	}
	return all
}

// remove deletes what the subject made.
func (l *life) remove(ctx context.Context, key string, o *unstructured.Unstructured) (bool, error) {
	if _, ok := l.given[key]; ok {
		return false, nil
	}
	return true, l.h.client.Delete(ctx, o.DeepCopy())
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
