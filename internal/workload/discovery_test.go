package workload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// paths has what an API server answers, by path; the rest is not found. By default /api has no versions, and
// group-versions whose group begins with g have no kinds.
type paths map[string]any

func (p paths) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, ok := p[r.URL.Path]
	if parts := strings.Split(r.URL.Path, "/"); !ok && len(parts) == 4 && strings.HasPrefix(parts[2], "g") {
		answer, ok = metav1.APIResourceList{}, true
	}
	if !ok && r.URL.Path == "/api" {
		answer, ok = metav1.APIVersions{}, true
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	if status, ok := answer.(int); ok {
		http.Error(w, "not today", status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(named(answer))
}

// named sets the kind of a response, as API servers do.
func named(answer any) any {
	switch a := answer.(type) {
	case metav1.APIVersions:
		a.Kind = "APIVersions"
		return a
	case metav1.APIGroupList:
		a.Kind = "APIGroupList"
		return a
	case metav1.APIGroup:
		a.Kind = "APIGroup"
		return a
	case metav1.APIResourceList:
		a.Kind = "APIResourceList"
		return a
	case apidiscovery.APIGroupDiscoveryList:
		a.Kind = "APIGroupDiscoveryList"
		return a
	}
	return answer
}

// groups returns n groups, each with one version.
func groups(n int) metav1.APIGroupList {
	var l metav1.APIGroupList
	for i := range n {
		l.Groups = append(l.Groups, group(fmt.Sprintf("g%d", i), "v1"))
	}
	return l
}

// resources returns n resources, each of another kind.
func resources(n int) metav1.APIResourceList {
	var l metav1.APIResourceList
	for i := range n {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: fmt.Sprintf("k%ds", i), Kind: fmt.Sprintf("K%d", i)})
	}
	return l
}

// aggregated returns a group with versions and kinds in one.
func aggregated(name string, versions, kinds int) apidiscovery.APIGroupDiscovery {
	g := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range versions {
		v := apidiscovery.APIVersionDiscovery{Version: fmt.Sprintf("v%d", i+1)}
		for j := range kinds {
			v.Resources = append(v.Resources, apidiscovery.APIResourceDiscovery{ResponseKind: &metav1.GroupVersionKind{Kind: fmt.Sprintf("K%d", j)}})
		}
		g.Versions = append(g.Versions, v)
	}
	return g
}

func all(groups ...apidiscovery.APIGroupDiscovery) apidiscovery.APIGroupDiscoveryList {
	return apidiscovery.APIGroupDiscoveryList{Items: groups}
}

func TestAPIVersionsAtOnce(t *testing.T) {
	apps := aggregated("apps", 2, 1)
	apps.Versions[1].Freshness = apidiscovery.DiscoveryFreshnessStale
	apps.Versions[0].Resources[0].Subresources = []apidiscovery.APISubresourceDiscovery{
		{Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Kind: "K0"}},
		{Subresource: "scale", ResponseKind: &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}},
		{Subresource: "proxy"},
	}
	var requests atomic.Int64
	answer := paths{"/api": all(aggregated("", 1, 2)), "/apis": all(apps)}
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if !strings.HasPrefix(r.Header.Get("Accept"), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,") {
			t.Errorf("it accepts %s", r.Header.Get("Accept"))
		}
		answer.ServeHTTP(w, r)
	})
	got, err := c.APIVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"apps/v1", "apps/v1/K0", "apps/v1/Scale", "v1", "v1/K0", "v1/K1"}, got); d != "" {
		t.Error(d)
	}
	if n := requests.Load(); n != 4 { // twice, as a version is stale
		t.Errorf("%d requests", n)
	}
}

func TestAPIVersionsHaveLimits(t *testing.T) {
	long := strings.Repeat("a", 257)
	for name, tc := range map[string]struct {
		served paths
		want   string // error; empty if all is accepted
		names  int
	}{
		"many groups":             {paths{"/apis": groups(1_000)}, "", 1_000},
		"too many groups":         {paths{"/apis": groups(1_001)}, "it has more than 1000 group-versions", 0},
		"too many core versions":  {paths{"/api": metav1.APIVersions{Versions: make([]string, 1_001)}}, "it has more than 1000 group-versions", 0},
		"too many in both":        {paths{"/api": metav1.APIVersions{Versions: []string{"v1"}}, "/apis": groups(1_000)}, "it has more than 1000 group-versions", 0},
		"many groups at once":     {paths{"/apis": all(aggregated("a", 999, 0), aggregated("b", 1, 0))}, "", 1_000},
		"too many groups at once": {paths{"/apis": all(aggregated("a", 999, 0), aggregated("b", 2, 0))}, "it has more than 1000 group-versions", 0},
		"many kinds":              {paths{"/apis": groups(2), "/apis/g0/v1": resources(9_999), "/apis/g1/v1": resources(10_001)}, "", 20_002},
		"too many kinds":          {paths{"/apis": groups(2), "/apis/g0/v1": resources(10_000), "/apis/g1/v1": resources(10_001)}, "it has more than 20000 kinds", 0},
		"too many kinds at once":  {paths{"/apis": all(aggregated("a", 2, 10_001))}, "it has more than 20000 kinds", 0},
		"a long group at once":    {paths{"/apis": all(aggregated(long, 1, 1))}, "it has more than 256 bytes in a name", 0},
		"a long group":            {paths{"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{group(long, "v1")}}}, "it has more than 256 bytes in a name", 0},
		"a long kind": {paths{"/apis": groups(1), "/apis/g0/v1": metav1.APIResourceList{
			APIResources: []metav1.APIResource{{Kind: long}}}}, "it has more than 256 bytes in a name", 0},
		"no list": {paths{"/apis": map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"creationTimestamp": long}}}}},
			`the cluster API path "/apis" answered with what is no list`, 0},
		"a failure of /apis": {paths{"/apis": http.StatusServiceUnavailable}, "the server is currently unable to handle the request", 0},
		"a failure of /api":  {paths{"/api": http.StatusServiceUnavailable, "/apis": groups(1)}, "the server is currently unable to handle the request", 0},
		"no /apis":           {paths{"/api": metav1.APIVersions{}}, "the server could not find the requested resource", 0},
		"a page for /api":    {paths{"/api": http.StatusNotFound, "/apis": groups(1)}, "the server could not find the requested resource", 0},
		"another's JSON": {paths{"/apis": metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Health"}}},
			`the cluster API path "/apis" answered with what is no list`, 0},
		"a page for a group": {paths{"/apis": groups(2), "/apis/g0/v1": http.StatusNotFound, "/apis/g1/v1": resources(1)},
			"the server could not find the requested resource", 0},
		"a group that is away": {paths{"/apis": groups(2), "/apis/g0/v1": http.StatusServiceUnavailable, "/apis/g1/v1": resources(1)},
			"the server is currently unable to handle the request", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cluster(t, tc.served.ServeHTTP).APIVersions(t.Context())
			if tc.want == "" && (err != nil || len(got) != tc.names) {
				t.Errorf("%d names and %v, want %d", len(got), err, tc.names)
			}
			if want := "asking the cluster what it serves: " + tc.want; tc.want != "" && (got != nil || err == nil || err.Error() != want) {
				t.Errorf("%.300v, want %s", err, want)
			}
		})
	}
}

// TestFewRequestsAtATime holds the first requests for groups, so that more than are allowed would be seen.
func TestFewRequestsAtATime(t *testing.T) {
	const parallel = 4
	var now, most, asked atomic.Int64
	tooMany := make(chan struct{})
	answer := paths{"/apis": groups(100)}
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") == 3 {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			switch i := asked.Add(1); {
			case i <= parallel:
				select {
				case <-tooMany:
				case <-time.After(200 * time.Millisecond):
				}
			case i == parallel+1:
				close(tooMany)
			}
		}
		answer.ServeHTTP(w, r)
	})
	if _, err := c.APIVersions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most.Load() != parallel || asked.Load() != 100 {
		t.Errorf("%d requests, %d at a time", asked.Load(), most.Load())
	}
}

func TestTooManyGroupsAreNotAsked(t *testing.T) {
	answer := paths{"/apis": groups(1_001)}
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api" && r.URL.Path != "/apis" {
			t.Errorf("%s is asked for", r.URL.Path)
		}
		answer.ServeHTTP(w, r)
	})
	if _, err := c.APIVersions(t.Context()); err == nil {
		t.Error("all is taken")
	}
}

func TestAPIVersionsEndWithTheirContext(t *testing.T) {
	for _, silent := range []string{"/api", "/apis", "/apis/g0/v1"} {
		t.Run(silent, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := paths{"/apis": groups(1)}
			c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == silent {
					cancel()
					select {
					case <-r.Context().Done():
					case <-time.After(5 * time.Second):
						t.Error("the request goes on")
					}
					return
				}
				answer.ServeHTTP(w, r)
			})
			if got, err := c.APIVersions(ctx); got != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
