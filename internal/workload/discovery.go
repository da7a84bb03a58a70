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

// What a cluster may serve, and how it is asked for it.
const (
	maxGroupVersions = 1_000
	maxKinds         = 20_000      // with those of subresources
	maxName          = 256         // bytes of the name of a group, a version, a kind or a resource
	parallel         = 4           // requests at a time
	rounds           = 2           // the second one if a group did not answer in the first
	discoveryTimeout = time.Minute // of all of it
)

// APIVersions are what the cluster serves, as charts ask for it: groups with versions, and these with
// kinds, sorted. Groups that do not answer are left out; a cluster that serves more than anybody needs is
// an error.
func (c *Cluster) APIVersions(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	var s *survey
	for range rounds {
		s = &survey{api: c.api}
		if err := s.run(ctx); err != nil {
			return nil, fmt.Errorf("asking the cluster what it serves: %w", err)
		}
		if !s.failed {
			break
		}
	}
	slices.Sort(s.names)
	return slices.Compact(s.names), nil
}

// resourcesOf asks for what a group-version has.
func resourcesOf(ctx context.Context, c rest.Interface, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	var l metav1.APIResourceList
	err := read(ctx, c, path, discovery.AcceptV1, &l)
	return l.APIResources, err
}

// read reads the answer of a path.
func read(ctx context.Context, c rest.Interface, path, accept string, into any) error {
	body, err := c.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return err
	}
	if json.Unmarshal(body, into) != nil { // the reason could quote all of it
		return fmt.Errorf("the cluster API path %q answered with what is no list", path)
	}
	return nil
}

func atMost(limit, n int, of string) error {
	if n > limit {
		return fmt.Errorf("it has more than %d %s", limit, of)
	}
	return nil
}

func short(names ...string) error {
	for _, n := range names {
		if err := atMost(maxName, len(n), "bytes in a name"); err != nil {
			return err
		}
	}
	return nil
}
