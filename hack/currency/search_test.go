package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary is what a search found, as text: patches, gaps, the next number, minors, the newest minor.
type summary struct{ Patches, Gaps, Next, Minors, Newest string }

func summarize(n newerVersions) summary {
	return summary{joinFound(n.Patches), joinMissing(n.Gaps), joinMissing([]missingVersion{n.Next}), joinFound(n.Minors), joinFound(n.NewestMinor)}
}

func joinFound(list []foundVersion) string {
	var words []string
	for _, f := range list {
		words = append(words, f.String())
	}
	return strings.Join(words, " ")
}

func joinMissing(list []missingVersion) string {
	var words []string
	for _, m := range list {
		words = append(words, m.String()+" "+describeMissing(m.Refused))
	}
	return strings.Join(words, ", ")
}

func TestSearch(t *testing.T) {
	for name, c := range map[string]struct {
		path, pinned string
		has, refuses []string
		want         summary
	}{
		"nothing newer": {pinned: "v1.36.3",
			want: summary{Next: "v1.36.4 unknown"}},
		"patches and minors": {pinned: "v1.36.3", has: []string{"v1.36.4", "v1.36.5", "v1.37.0", "v1.38.0", "v1.38.1"},
			want: summary{Patches: "v1.36.4 v1.36.5", Next: "v1.36.6 unknown", Minors: "v1.37.0 v1.38.0", Newest: "v1.38.0 v1.38.1"}},
		"older ones do not count": {pinned: "v1.36.3", has: []string{"v1.36.3", "v1.36.2", "v1.35.9"},
			want: summary{Next: "v1.36.4 unknown"}},
		"gap of three patches": {pinned: "v1.36.3", has: []string{"v1.36.7"}, refuses: []string{"v1.36.5", "v1.36.8"},
			want: summary{Patches: "v1.36.7", Gaps: "v1.36.4 unknown, v1.36.5 refused, v1.36.6 unknown", Next: "v1.36.8 refused"}},
		"gap of four patches is too wide": {pinned: "v1.36.3", has: []string{"v1.36.8"},
			want: summary{Next: "v1.36.4 unknown"}},
		"gap is counted from the last one found": {pinned: "v1.36.3", has: []string{"v1.36.6", "v1.36.10"},
			want: summary{
				Patches: "v1.36.6 v1.36.10", Gaps: "v1.36.4 unknown, v1.36.5 unknown, v1.36.7 unknown, v1.36.8 unknown, v1.36.9 unknown", Next: "v1.36.11 unknown",
			}},
		"refused versions are not to be had": {pinned: "v1.36.3", has: []string{"v1.36.4"}, refuses: []string{"v1.36.4"},
			want: summary{Next: "v1.36.4 refused"}},
		"gap of two minors": {pinned: "v0.4.0", has: []string{"v0.7.0", "v0.7.1"},
			want: summary{Next: "v0.4.1 unknown", Minors: "v0.7.0", Newest: "v0.7.0 v0.7.1"}},
		"gap of three minors is too wide": {pinned: "v0.4.0", has: []string{"v0.8.0"},
			want: summary{Next: "v0.4.1 unknown"}},
		"minor whose first release is refused": {pinned: "v1.36.3", has: []string{"v1.37.1", "v1.37.2"}, refuses: []string{"v1.37.0"},
			want: summary{Next: "v1.36.4 unknown", Minors: "v1.37.1", Newest: "v1.37.1 v1.37.2"}},
		"major in the path": {path: "example.com/m/v6", pinned: "v6.0.2", has: []string{"v6.0.3", "v6.1.0", "v7.0.0"},
			want: summary{Patches: "v6.0.3", Next: "v6.0.4 unknown", Minors: "v6.1.0", Newest: "v6.1.0"}},
		"incompatible": {pinned: "v2.5.0+incompatible", has: []string{"v2.5.1+incompatible", "v2.6.0+incompatible", "v2.5.2"},
			want: summary{Patches: "v2.5.1+incompatible", Next: "v2.5.2+incompatible unknown", Minors: "v2.6.0+incompatible", Newest: "v2.6.0+incompatible"}},
		"pre-release is followed by its release": {pinned: "v1.2.3-rc.1", has: []string{"v1.2.3", "v1.2.4"},
			want: summary{Patches: "v1.2.3 v1.2.4", Next: "v1.2.5 unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = "example.com/m"
			}
			p := &fakeProxy{Has: map[string]string{}}
			for _, v := range c.has {
				p.Has[path+"@"+v] = "2026-01-01"
			}
			for _, v := range c.refuses {
				p.Refuses = append(p.Refuses, path+"@"+v)
			}
			pinned, err := parseVersionNumber(c.pinned)
			if err != nil {
				t.Fatal(err)
			}
			n, err := search{Lookup: p.lookup, Path: path}.run(t.Context(), pinned)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, summarize(n)); diff != "" {
				t.Error(diff)
			}
			slices.Sort(p.asked)
			if all := len(p.asked); all != len(slices.Compact(p.asked)) {
				t.Errorf("some of %d versions were asked for twice", all)
			}
		})
	}
}

func TestSearchTakesNoFaultForAMissingVersion(t *testing.T) {
	for _, version := range []string{"v1.36.4", "v1.36.6", "v1.37.0", "v1.38.1", "v1.37.1"} {
		p := &fakeProxy{Has: map[string]string{"example.com/m@v1.37.0": "2026-01-01"}, Breaks: []string{"example.com/m@" + version}}
		_, err := search{Lookup: p.lookup, Path: "example.com/m"}.run(t.Context(), versionNumber{Major: 1, Minor: 36, Patch: 3})
		if !errors.Is(err, errBroken) {
			t.Errorf("a fault at %s ends in %v", version, err)
		}
	}
}

func TestLookupKubernetes(t *testing.T) {
	p := &fakeProxy{
		Has:     map[string]string{"k8s.io/kubernetes@v1.36.4": "2026-08-20", "k8s.io/api@v0.36.4": "2026-08-21", "k8s.io/api@v0.36.5": "2026-09-24"},
		Refuses: []string{"k8s.io/kubernetes@v1.36.5", "k8s.io/kubernetes@v1.36.6"},
		Breaks:  []string{"k8s.io/kubernetes@v1.36.8", "k8s.io/api@v0.36.9"},
	}
	for version, want := range map[string]struct {
		moduleRelease
		err error
	}{
		"v1.36.4": {moduleRelease{Time: day(t, "2026-08-20"), Verified: true}, nil},
		"v1.36.5": {moduleRelease{Time: day(t, "2026-09-24"), Verified: true, Via: stagingPath}, nil},
		"v1.36.6": {moduleRelease{}, errRefused},
		"v1.36.7": {moduleRelease{}, errUnknown},
		"v1.36.8": {moduleRelease{}, errBroken},
		"v1.36.9": {moduleRelease{Via: stagingPath}, errBroken},
	} {
		r, err := lookupKubernetes(p.lookup)(context.WithoutCancel(t.Context()), kubernetesPath, version)
		if r != want.moduleRelease || !errors.Is(err, want.err) {
			t.Errorf("%s: %+v, %v; want %+v", version, r, err, want)
		}
	}
}
