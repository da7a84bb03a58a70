package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope says whether objects of a kind are namespaced.
type scope int

const (
	namespaced scope = iota
	clusterScoped
)

// scopes looks up the scope of kinds, and collects those that are missing.
type scopes struct {
	mapper       meta.RESTMapper
	defined      map[schema.GroupVersionKind]scope // by definitions of the same set
	known        map[schema.GroupVersionKind]scope // already looked up
	missingKinds []error
}

// scopeOfObject returns the scope of an object. A kind that is missing counts as namespaced, so that the rules
// are checked for it, too.
func (s *scopes) scopeOfObject(ref Ref) (scope, error) {
	gvk := ref.GroupVersionKind()
	if known, ok := s.known[gvk]; ok {
		return known, nil
	}
	found, err := s.resolveScope(gvk)
	switch {
	case meta.IsNoMatchError(err):
		s.missingKinds = append(s.missingKinds,
			fmt.Errorf("%s cannot be applied: %w; bring its definition, or install it before",
				ref, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}))
	case err != nil:
		return 0, fmt.Errorf("asking for the kind of %s: %w", ref, err)
	}
	s.known[gvk] = found
	return found, nil
}

// resolveScope asks the cluster first: what it serves already is not changed by a definition of the set.
func (s *scopes) resolveScope(gvk schema.GroupVersionKind) (scope, error) {
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil {
		return scopeOf(m.Scope.Name() == meta.RESTScopeNameNamespace), nil
	}
	if defined, ok := s.defined[gvk]; ok && meta.IsNoMatchError(err) {
		return defined, nil
	}
	return namespaced, err
}

func scopeOf(isNamespaced bool) scope {
	if isNamespaced {
		return namespaced
	}
	return clusterScoped
}

// definedKinds are the kinds that custom resource definitions among the objects bring.
func definedKinds(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]scope {
	out := map[schema.GroupVersionKind]scope{}
	for _, o := range objects {
		if o == nil || !isDefinition(RefOf(o)) {
			continue
		}
		where, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		for _, gvk := range servedKinds(o) {
			out[gvk] = scopeOf(where == "Namespaced")
		}
	}
	return out
}

func isDefinition(r Ref) bool {
	return r.Group == "apiextensions.k8s.io" && r.Kind == "CustomResourceDefinition"
}

// servedKinds are the kinds, one for each version, that a definition serves.
func servedKinds(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	field, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	versions, _ := field.([]any)
	var out []schema.GroupVersionKind
	for _, v := range versions {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		if isServed, _ := m["served"].(bool); isServed && name != "" {
			out = append(out, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return out
}
