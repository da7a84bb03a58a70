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

// Encode turns a Cluster into what is applied, and gives its digest, which it carries in an annotation.
func Encode(c *clusterv1.Cluster) (*unstructured.Unstructured, string, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return nil, "", fmt.Errorf("converting the Cluster: %w", err)
	}
	u := &unstructured.Unstructured{Object: m}
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

// HasDesiredState says that all that is wanted is there, whatever else there is.
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

// isSubset says that a value has all of another. Entries of lists are known by their name, if they have one; other lists
// are the same, as far as each entry is.
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

// hasNames says that all entries of a list have a name.
func hasNames(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
		m, ok := e.(map[string]any)
		return !ok || m["name"] == nil
	})
}

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
