package workload_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// versions returns a group with many versions, of which the last is preferred.
func versions(names ...string) metav1.APIGroup {
	var g metav1.APIGroup
	for _, n := range names {
		g.PreferredVersion = metav1.GroupVersionForDiscovery{Version: n}
		g.Versions = append(g.Versions, g.PreferredVersion)
	}
	return g
}

func list(resources ...metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{APIResources: resources}
}

func TestKindsAreFound(t *testing.T) {
	scale := metav1.APIResource{Name: "sets/scale", Kind: "Scale"}
	set := metav1.APIResource{Name: "sets", Kind: "Set", Namespaced: true}
	served := paths{
		"/apis":         metav1.APIGroupList{Groups: []metav1.APIGroup{group("a", "v1"), group("late", "v1")}},
		"/api/v1":       list(metav1.APIResource{Name: "nodes", Kind: "Node"}, metav1.APIResource{Name: "nodes/status", Kind: "Node"}),
		"/apis/a":       versions("v1", "v2", "v3"),
		"/apis/a/v1":    list(set, metav1.APIResource{Name: "olds", Kind: "Old"}),
		"/apis/a/v2":    list(set),
		"/apis/a/v3":    list(scale, set, metav1.APIResource{Name: "othersets", Kind: "Set"}),
		"/apis/down":    versions("v1", "v2"),
		"/apis/down/v1": list(set),
		"/apis/down/v2": http.StatusServiceUnavailable,
		"/apis/many":    versions(make([]string, 21)...),
		"/apis/long/v1": list(metav1.APIResource{Name: strings.Repeat("a", 257), Kind: "Set"}),
		"/apis/wide/v1": resources(20_001),
		"/apis/new":     versions("v1"),
		"/apis/ok/v1":   map[string]string{"status": "ok"},
	}
	for name, tc := range map[string]struct {
		group, kind string
		versions    []string
		want        string // resource or error
	}{
		"of the cluster":                        {"", "Node", []string{"v1"}, "v1/nodes root"},
		"of the core, without a version":        {"", "Node", nil, "v1/nodes root"},
		"of a namespace":                        {"a", "Set", []string{"v2"}, "a/v2/sets namespace"},
		"of the first version that is":          {"a", "Old", []string{"v2", "v1"}, "a/v1/olds root"},
		"in the preferred version":              {"a", "Set", nil, "a/v3/sets namespace"},
		"with an empty version":                 {"a", "Set", []string{""}, "a/v3/sets namespace"},
		"in another than the preferred":         {"a", "Old", nil, "a/v1/olds root"},
		"only a subresource":                    {"a", "Scale", []string{"v3"}, "no match"},
		"not there":                             {"a", "None", []string{"v1"}, "no match"},
		"not in any version":                    {"a", "None", nil, "no match"},
		"in a version that is not there":        {"a", "Set", []string{"v9"}, "no match"},
		"in a group that is not there":          {"b", "Set", nil, "no match"},
		"in a group that is listed, and a page": {"late", "Set", nil, "asking the cluster for kind Set.late: the server could not find the requested resource"},
		"in a version that is listed, and a page": {"new", "Set", []string{"v1"},
			"asking the cluster for kind Set.new: the server could not find the requested resource"},
		"in a core version that is not there": {"", "Node", []string{"v2"}, "no match"},
		"where another program answers": {"ok", "Set", []string{"v1"},
			`asking the cluster for kind Set.ok: the cluster API path "/apis/ok/v1" answered with what is no list`},
		"in a version that fails":         {"down", "Set", nil, "asking the cluster for kind Set.down: the server is currently unable to handle the request"},
		"beside a version that fails":     {"down", "Set", []string{"v1"}, "down/v1/sets namespace"},
		"in a group of too many versions": {"many", "Set", nil, "asking the cluster for kind Set.many: it has more than 20 versions of group many"},
		"of a resource with a long name":  {"long", "Set", []string{"v1"}, "asking the cluster for kind Set.long: it has more than 256 bytes in a name"},
		"in a version of too many kinds":  {"wide", "K1", []string{"v1"}, "asking the cluster for kind K1.wide: it has more than 20000 kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			m := cluster(t, served.ServeHTTP).Client.RESTMapper()
			gk := schema.GroupKind{Group: tc.group, Kind: tc.kind}
			for range 2 { // what is known is the same
				one, err := m.RESTMapping(gk, tc.versions...)
				if d := cmp.Diff(tc.want, told(one, err)); d != "" {
					t.Error(d)
				}
				if all, err := m.RESTMappings(gk, tc.versions...); err == nil && (len(all) != 1 || told(all[0], nil) != tc.want) {
					t.Errorf("all: %v", all)
				}
			}
		})
	}
}

func told(m *meta.RESTMapping, err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return "no match"
	case err != nil:
		return err.Error()
	}
	return m.Resource.GroupVersion().String() + "/" + m.Resource.Resource + " " + string(m.Scope.Name())
}

// TestKindsAreKept has a definition that comes later: a kind that was found is not requested again, and one that
// was not found is.
func TestKindsAreKept(t *testing.T) {
	var requests atomic.Int64
	var later atomic.Bool
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		l := list(metav1.APIResource{Name: "sets", Kind: "Set"})
		if later.Load() {
			l = list(append(l.APIResources, metav1.APIResource{Name: "others", Kind: "Other"})...)
		}
		paths{"/apis/a/v1": l}.ServeHTTP(w, r)
	})
	asks := func(kind, want string, total int64) {
		t.Helper()
		got := told(c.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "a", Kind: kind}, "v1"))
		if got != want || requests.Load() != total {
			t.Errorf("%s and %d requests, want %s and %d", got, requests.Load(), want, total)
		}
	}
	asks("Set", "a/v1/sets root", 1)
	asks("Set", "a/v1/sets root", 1)
	asks("Other", "no match", 2)
	later.Store(true)
	asks("Other", "a/v1/others root", 3)
	asks("Set", "a/v1/sets root", 3)
}

// A kind that was found and is gone since, or has lost a version, is asked for again after Reset.
func TestResetForgetsKinds(t *testing.T) {
	var gone atomic.Bool
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		answers := paths{"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{group("other", "v1")}}}
		if !gone.Load() {
			answers["/apis/a/v1"] = list(metav1.APIResource{Name: "sets", Kind: "Set"})
		}
		answers.ServeHTTP(w, r)
	})
	m, gk := c.Client.RESTMapper(), schema.GroupKind{Group: "a", Kind: "Set"}
	if got := told(m.RESTMapping(gk, "v1")); got != "a/v1/sets root" {
		t.Fatal(got)
	}
	gone.Store(true)
	if got := told(m.RESTMapping(gk, "v1")); got != "a/v1/sets root" {
		t.Errorf("before: %s", got)
	}
	meta.MaybeResetRESTMapper(m)
	if got := told(m.RESTMapping(gk, "v1")); got != "no match" {
		t.Errorf("after: %s", got)
	}
}

// A cluster that answers with pages, now and then, never seems to lack a kind that it has.
func TestPagesAreNoMissingKinds(t *testing.T) {
	set := list(metav1.APIResource{Name: "sets", Kind: "Set"})
	answers := paths{"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{group("a", "v1")}}, "/apis/a": versions("v1"), "/apis/a/v1": set}
	for mask := range 1 << 4 { // which of the next requests are answered with a page
		var n atomic.Int64
		c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
			if i := n.Add(1) - 1; i < 4 && mask&(1<<i) != 0 {
				http.NotFound(w, r)
				return
			}
			answers.ServeHTTP(w, r)
		})
		for _, version := range []string{"v1", ""} {
			n.Store(0)
			meta.MaybeResetRESTMapper(c.Client.RESTMapper())
			if got := told(c.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "a", Kind: "Set"}, version)); got == "no match" {
				t.Errorf("pages %04b, version %q: the kind is unknown", mask, version)
			}
		}
	}
}
