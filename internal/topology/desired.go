package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Encode turns a Cluster into the object that is applied and returns its digest, which the object carries in an
// annotation.
func Encode(c *clusterv1.Cluster) (*unstructured.Unstructured, string, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return nil, "", fmt.Errorf("converting the Cluster: %w", err)
	}
	u := &unstructured.Unstructured{Object: m}
	// What server-side apply sends it owns: neither status nor a zero creation time are ours.
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	b, err := json.Marshal(u.Object)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(b)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	a := u.GetAnnotations()
	u.SetAnnotations(MergeMaps(a, map[string]string{v1alpha1.AppliedAnnotation: digest}))
	return u, digest, nil
}

// HasDesiredState reports whether a Cluster has all that is wanted, whatever else it has: defaults, and fields of
// others.
func HasDesiredState(is *clusterv1.Cluster, want *unstructured.Unstructured) bool {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return false
	}
	if !isSubset(want.Object["spec"], have["spec"]) {
		return false
	}
	for k, v := range want.GetLabels() {
		if is.Labels[k] != v {
			return false
		}
	}
	for k, v := range want.GetAnnotations() {
		if is.Annotations[k] != v {
			return false
		}
	}
	return true
}

// isSubset reports whether a value has all of another. Entries of lists are matched by name if all have one. Other
// lists must have the same length, and each entry all of the one at its place.
func isSubset(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if !isSubset(v, h[k]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return false
		}
		if hasNames(w) && hasNames(h) {
			return isNamedSubset(w, h)
		}
		if len(h) != len(w) {
			return false
		}
		for i := range w {
			if !isSubset(w[i], h[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, have)
}

// hasNames reports whether a list has entries, and all of them have a name.
func hasNames(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
		m, ok := e.(map[string]any)
		return !ok || m["name"] == nil
	})
}

// isNamedSubset reports whether each wanted entry is in a list, found by its name, with all it has.
func isNamedSubset(want, have []any) bool {
	by := map[any]any{}
	for _, e := range have {
		if m, ok := e.(map[string]any); ok {
			by[m["name"]] = m
		}
	}
	return !slices.ContainsFunc(want, func(e any) bool {
		m, ok := e.(map[string]any)
		return !ok || !isSubset(m, by[m["name"]])
	})
}
