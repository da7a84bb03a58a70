package workload

import (
	"context"
	"sync"
	"sync/atomic"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discoveryRound asks a cluster once for all it serves. The methods of client-go for it take no context, and
// start as many requests at once as the server claims to have group-versions.
type discoveryRound struct {
	api      rest.Interface
	unlisted []schema.GroupVersion // group-versions whose kinds have to be requested one by one

	mu          sync.Mutex // guards all below
	apiVersions []string
	groups      int
	kinds       int
	stale       bool // a group was left out
}

// rootResponse is the answer of /api and /apis: kinds of all groups at once, if the server can do that, or else a
// list of versions or groups.
type rootResponse struct {
	Items    []apidiscovery.APIGroupDiscovery `json:"items"`
	Versions []string                         `json:"versions"`
	Groups   []metav1.APIGroup                `json:"groups"`
}

func (s *discoveryRound) run(ctx context.Context) error {
	for _, path := range []string{"/api", "/apis"} {
		var r rootResponse
		err := getDiscovery(ctx, s.api, path, discovery.AcceptV2+","+discovery.AcceptV1, &r, "APIGroupDiscoveryList",
			"APIVersions", "APIGroupList")
		if err != nil {
			return err
		}
		if err := s.addRoot(r); err != nil {
			return err
		}
	}
	return s.discoverUnlisted(ctx)
}

// addRoot adds the kinds of a response, and notes the group-versions that came without kinds.
func (s *discoveryRound) addRoot(r rootResponse) error {
	for _, g := range r.Items {
		for _, v := range g.Versions {
			if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
				s.stale = true
				continue
			}
			if err := s.addGroupVersion(schema.GroupVersion{Group: g.Name, Version: v.Version}, kindsOf(v)); err != nil {
				return err
			}
		}
	}
	for _, v := range r.Versions {
		s.unlisted = append(s.unlisted, schema.GroupVersion{Version: v})
	}
	for _, g := range r.Groups {
		for _, v := range g.Versions {
			s.unlisted = append(s.unlisted, schema.GroupVersion{Group: g.Name, Version: v.Version})
		}
	}
	return checkLimit(maxGroupVersions, s.groups+len(s.unlisted), "group-versions")
}

// discoverUnlisted requests the kinds of each group-version that came without.
func (s *discoveryRound) discoverUnlisted(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(parallelRequests, len(s.unlisted)) {
		all.Go(func() {
			for i := int(next.Add(1)); i <= len(s.unlisted) && ctx.Err() == nil; i = int(next.Add(1)) {
				if err := s.discoverGroupVersion(ctx, s.unlisted[i-1]); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// discoverGroupVersion requests the kinds of a group-version.
func (s *discoveryRound) discoverGroupVersion(ctx context.Context, gv schema.GroupVersion) error {
	if err := checkNameLengths(gv.Group, gv.Version); err != nil {
		return err
	}
	resources, err := resourcesOf(ctx, s.api, gv)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []string
	for _, r := range resources {
		kinds = append(kinds, r.Kind)
	}
	return s.addGroupVersion(gv, kinds)
}

// addGroupVersion adds a group-version with its kinds.
func (s *discoveryRound) addGroupVersion(gv schema.GroupVersion, kinds []string) error {
	s.groups, s.kinds = s.groups+1, s.kinds+len(kinds)
	if err := checkLimit(maxKinds, s.kinds, "kinds"); err != nil {
		return err
	}
	// Before they are joined: a long group name with many kinds would take much memory.
	if err := checkNameLengths(append(kinds, gv.Group, gv.Version)...); err != nil {
		return err
	}
	s.apiVersions = append(s.apiVersions, gv.String())
	for _, k := range kinds {
		s.apiVersions = append(s.apiVersions, gv.String()+"/"+k)
	}
	return nil
}

func kindsOf(v apidiscovery.APIVersionDiscovery) []string {
	var out []string
	for _, r := range v.Resources {
		if r.ResponseKind != nil && r.ResponseKind.Kind != "" {
			out = append(out, r.ResponseKind.Kind)
		}
		for _, sub := range r.Subresources {
			if sub.ResponseKind != nil && sub.ResponseKind.Kind != "" {
				out = append(out, sub.ResponseKind.Kind)
			}
		}
	}
	return out
}
