package reconciletest

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// harnessPrefix begins the names of labels and annotations that the harness sets.
const harnessPrefix = "reconciletest.polder.dev/"

// snapshot has the objects of a subject's kinds in a namespace, by kind and name.
type snapshot map[string]unstructured.Unstructured

func (h *harness) snapshot(ctx context.Context, namespace string) (snapshot, error) {
	out := snapshot{}
	for _, k := range h.subject.Kinds {
		all, err := listObjects(ctx, h.client, k, namespace)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if !isProvidedByPlane(&o) {
				out[o.GetKind()+"/"+o.GetName()] = o
			}
		}
	}
	return out, nil
}

// isProvidedByPlane says whether the plane creates such an object in every namespace.
func isProvidedByPlane(o *unstructured.Unstructured) bool {
	switch o.GetKind() + "/" + o.GetName() {
	case "ConfigMap/kube-root-ca.crt", "ServiceAccount/default":
		return true
	}
	return false
}

// keys returns the keys in order, so that failures are the same each time.
func (s snapshot) keys() (keys []string) {
	for k := range s {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// state is a snapshot without what differs from run to run.
type state map[string]any

func (h *harness) normalizedState(s snapshot, namespace string) state {
	out := state{}
	for key, o := range s {
		o := o.DeepCopy()
		h.subject.Normalize(o)
		out[strings.ReplaceAll(key, namespace, "NAMESPACE")] = normalize(o, namespace)
	}
	return out
}

// diff shows what b has that a has not (+), and the other way round (-).
func diff(a, b state) string { return cmp.Diff(map[string]any(a), map[string]any(b)) }

func normalize(o *unstructured.Unstructured, namespace string) any {
	generation := o.GetGeneration()
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace",
		"selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	return (&normalizer{namespace: namespace, generation: generation}).value("", o.Object)
}

// normalizer replaces values that differ from run to run by fixed words.
type normalizer struct {
	namespace  string
	generation int64
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (n *normalizer) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return n.object(v)
	case []any:
		return n.list(v)
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "TIME"
		}
		return uuid.ReplaceAllString(strings.ReplaceAll(v, n.namespace, "NAMESPACE"), "UID")
	case int64:
		if key != "observedGeneration" {
			return v
		}
		if v == n.generation {
			return "PRESENT"
		}
		return "PAST"
	}
	return v
}

func (n *normalizer) object(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if strings.HasPrefix(k, harnessPrefix) {
			continue
		}
		out[k] = n.value(k, v)
		if inner, ok := out[k].(map[string]any); ok && len(inner) == 0 {
			delete(out, k) // labels, for example, of which none is left
		}
	}
	return out
}

// list sorts lists whose order means nothing.
func (n *normalizer) list(l []any) any {
	out := make([]any, 0, len(l))
	for _, v := range l {
		out = append(out, n.value("", v))
	}
	if !slices.ContainsFunc(out, func(v any) bool { return sortKey(v) == "" }) {
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(sortKey(a), sortKey(b)) })
	}
	return out
}

// sortKey returns what conditions, owner references and the like are sorted by; it is empty for others.
func sortKey(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"type", "uid", "name"} {
		if _, ok := m[key].(string); ok {
			b, _ := json.Marshal(m)            // it was read from JSON
			return m[key].(string) + string(b) //nolint:forcetypeassert // just seen
		}
	}
	return ""
}
