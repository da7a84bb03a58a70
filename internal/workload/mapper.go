package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// maxVersions is how many versions of a group are searched for a kind.
const maxVersions = 20

// mapper finds the resource of a kind. The mapper of controller-runtime would keep all that a cluster says it
// serves, and request as many versions of a group as it claims, one by one, however long that takes.
type mapper struct {
	meta.RESTMapper // an empty one, for the other methods: only mappings of kinds are needed here
	api             rest.Interface

	mu    sync.Mutex
	cache map[schema.GroupVersion]map[string]*meta.RESTMapping // by kind
}

var _ meta.ResettableRESTMapper = (*mapper)(nil)

// NewRESTMapper returns a mapper that finds the resources of kinds. A kind is unknown to it only if the cluster
// lists what it serves, and the kind is not among that. What it has found it keeps until Reset is called.
func NewRESTMapper(api rest.Interface) meta.ResettableRESTMapper {
	return &mapper{
		RESTMapper: meta.NewDefaultRESTMapper(nil), api: api, cache: map[schema.GroupVersion]map[string]*meta.RESTMapping{},
	}
}

// Reset empties the cache: a kind may be gone, or may have lost a version.
func (m *mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.cache)
}

// RESTMappings returns what RESTMapping does: one mapping is enough.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	found, err := m.RESTMapping(gk, versions...)
	if err != nil {
		return nil, err
	}
	return []*meta.RESTMapping{found}, nil
}

// RESTMapping finds a kind in the first of the versions that has it; without versions, it searches all versions
// of the group, first the one that the cluster prefers.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout) //nolint:forbidigo // the interface has no context
	defer cancel()
	versions = slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == "" })
	if len(versions) == 0 {
		var err error
		if versions, err = m.versionsOfGroup(ctx, gk.Group); err != nil {
			return nil, fmt.Errorf("asking the cluster for kind %s: %w", gk, err)
		}
	}
	for _, v := range versions {
		found, err := m.findMapping(ctx, gk.WithVersion(v))
		if err != nil {
			return nil, fmt.Errorf("asking the cluster for kind %s: %w", gk, err)
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
}

// versionsOfGroup returns the versions of a group; none if the cluster has no such group.
func (m *mapper) versionsOfGroup(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	var g metav1.APIGroup
	if err := getDiscovery(ctx, m.api, "/apis/"+group, discovery.AcceptV1, &g, "APIGroup"); err != nil {
		return nil, m.confirmNoGroup(ctx, group, err)
	}
	if err := checkLimit(maxVersions, len(g.Versions), "versions of group "+group); err != nil {
		return nil, err
	}
	var out []string
	for _, v := range g.Versions {
		if v.Version == g.PreferredVersion.Version {
			out = slices.Insert(out, 0, v.Version)
			continue
		}
		out = append(out, v.Version)
	}
	return out, checkNameLengths(out...)
}

// findMapping finds the mapping of a kind; nil if there is none.
func (m *mapper) findMapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	gv := gvk.GroupVersion()
	m.mu.Lock()
	found := m.cache[gv][gvk.Kind]
	m.mu.Unlock()
	if found != nil {
		return found, nil
	}
	// Absence is not cached: the definition of the kind may come later.
	resources, err := resourcesOf(ctx, m.api, gv)
	if err != nil {
		return nil, m.confirmNoVersion(ctx, gv, err)
	}
	kinds, err := mappingsByKind(gv, resources)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cache[gv] = kinds
	return kinds[gvk.Kind], nil
}

// mappingsByKind returns the mappings of the kinds of a group-version.
func mappingsByKind(gv schema.GroupVersion, resources []metav1.APIResource) (map[string]*meta.RESTMapping, error) {
	if err := checkLimit(maxKinds, len(resources), "kinds"); err != nil {
		return nil, err
	}
	out := map[string]*meta.RESTMapping{}
	for _, r := range resources {
		if err := checkNameLengths(r.Kind, r.Name); err != nil {
			return nil, err
		}
		if strings.Contains(r.Name, "/") || out[r.Kind] != nil {
			continue // a subresource, or another resource of the same kind
		}
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		out[r.Kind] = &meta.RESTMapping{
			Resource: gv.WithResource(r.Name), GroupVersionKind: gv.WithKind(r.Kind), Scope: scope,
		}
	}
	return out, nil
}

// confirmNoGroup returns nil if failed is a 404 and the cluster's list of groups does not have the group: a 404
// alone may be a page of any server.
func (m *mapper) confirmNoGroup(ctx context.Context, group string, failed error) error {
	if !apierrors.IsNotFound(failed) {
		return failed
	}
	var l metav1.APIGroupList
	if err := getDiscovery(ctx, m.api, "/apis", discovery.AcceptV1, &l, "APIGroupList"); err != nil {
		return err
	}
	if slices.ContainsFunc(l.Groups, func(g metav1.APIGroup) bool { return g.Name == group }) {
		return failed
	}
	return nil
}

// confirmNoVersion does the same for a version of a group.
func (m *mapper) confirmNoVersion(ctx context.Context, gv schema.GroupVersion, failed error) error {
	if !apierrors.IsNotFound(failed) {
		return failed
	}
	served, err := m.versionsOfGroup(ctx, gv.Group)
	if err != nil {
		return err
	}
	if slices.Contains(served, gv.Version) {
		return failed
	}
	return nil
}
