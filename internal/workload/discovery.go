package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Limits of what a cluster may serve, and how it is asked for it.
const (
	maxGroupVersions   = 1_000
	maxKinds           = 20_000      // with those of subresources
	maxNameBytes       = 256         // bytes of the name of a group, a version, a kind or a resource
	parallelRequests   = 4           // requests at a time
	maxDiscoveryRounds = 2           // the second one if a group was stale in the first
	discoveryTimeout   = time.Minute // for all rounds together
)

// APIVersions returns what the cluster serves, as charts ask for it: groups with versions, and these with kinds,
// sorted. Groups that the cluster itself calls stale are left out, since whoever serves them may be away for
// good. Any other gap is an error: charts would leave out objects, which would then be pruned. So is a cluster
// that serves more than anybody needs.
func (c *Cluster) APIVersions(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	var s *discoveryRound
	for range maxDiscoveryRounds {
		s = &discoveryRound{api: c.api}
		if err := s.run(ctx); err != nil {
			return nil, fmt.Errorf("asking the cluster what it serves: %w", err)
		}
		if !s.stale {
			break
		}
	}
	slices.Sort(s.apiVersions)
	return slices.Compact(s.apiVersions), nil
}

// resourcesOf requests the resources of a group-version.
func resourcesOf(ctx context.Context, c rest.Interface, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	var l metav1.APIResourceList
	err := getDiscovery(ctx, c, path, discovery.AcceptV1, &l, "APIResourceList")
	return l.APIResources, err
}

// getDiscovery reads the response of a path, which must be of one of the kinds: a page, or another program's
// JSON, would seem to say that the cluster serves nothing.
func getDiscovery(ctx context.Context, c rest.Interface, path, accept string, into any, kinds ...string) error {
	body, err := c.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return err
	}
	var is metav1.TypeMeta
	if json.Unmarshal(body, &is) != nil || !slices.Contains(kinds, is.Kind) || json.Unmarshal(body, into) != nil {
		return fmt.Errorf("the cluster API path %q answered with what is no list", path) // the reason could quote all of it
	}
	return nil
}

func checkLimit(limit, n int, of string) error {
	if n > limit {
		return fmt.Errorf("it has more than %d %s", limit, of)
	}
	return nil
}

func checkNameLengths(names ...string) error {
	for _, n := range names {
		if err := checkLimit(maxNameBytes, len(n), "bytes in a name"); err != nil {
			return err
		}
	}
	return nil
}
