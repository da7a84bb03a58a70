package stack_test

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// sourceFiles gives the smallest source with stages, after some changes.
func sourceFiles(change map[string]string) archive.Tree {
	t := archive.Tree{
		"stack.yaml":                     []byte("provider: docker\nclusterStackName: ferrol\nkubernetesVersions: [v1.35.7, v1.36.3]\n"),
		"clusteraddon.yaml":              []byte("apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}]}\n"),
		"README.md":                      []byte("not in a release"),
		"node-images/config.yaml":        []byte("images: []\n"),
		"cluster-class/Chart.yaml":       []byte("# a comment stays\napiVersion: v2\nname: docker-ferrol-cluster-class\nversion: v0\n"),
		"cluster-class/.helmignore":      []byte("notes/\n*.bak\n"),
		"cluster-class/notes/x.md":       []byte("ignored"),
		"cluster-class/a.bak":            []byte("ignored"),
		"cluster-class/templates/c.yaml": []byte("v: << .ClusterClassVersion >> << .ClusterAddonVersion >> << .NodeImageVersion >>\nscript: |\n  cat << EOF\n  text\n  EOF\n  << .Unknown >>\n"),
		"cluster-addon/cni/Chart.yaml":   []byte("apiVersion: v2\nname: cni\nversion: 1.0.0\n"),
		"cluster-addon/cni/values.yaml":  []byte("version: << .ClusterAddonVersion >>\n"),
		"cluster-addon/stray.txt":        []byte("stays"),
		"cluster-addon/cni/.helmignore":  []byte("*.bak\n"),
		"cluster-addon/cni/x.bak":        []byte("ignored"),
		"cluster-addon/cni/templates/.x": []byte("ignored by Helm always"),
	}
	for name, text := range change {
		t[name] = []byte(text)
	}
	return t
}

func source(t testing.TB, change map[string]string) *stack.Source {
	t.Helper()
	s, err := stack.ParseSource(sourceFiles(change))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func build(t testing.TB, s *stack.Source, mode string, h stack.History) *stack.Release {
	t.Helper()
	v, err := s.Plan(mode, h)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Build(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuild(t *testing.T) {
	r := build(t, source(t, nil), stack.ModeStable, stack.History{})
	want := []string{
		"clusteraddon.yaml", "docker-ferrol-1-36-cluster-addon-v1.tgz", "docker-ferrol-1-36-cluster-class-v1.tgz", "hashes.json", "metadata.yaml", "node-images.yaml",
	}
	if d := cmp.Diff(want, r.Files.Names()); d != "" {
		t.Error("files of the release:", d)
	}
	class := unpack(t, r.Files["docker-ferrol-1-36-cluster-class-v1.tgz"])
	if d := cmp.Diff(map[string]string{
		"docker-ferrol-1-36-cluster-class/.helmignore":      "notes/\n*.bak\n",
		"docker-ferrol-1-36-cluster-class/Chart.yaml":       "# a comment stays\napiVersion: v2\nname: docker-ferrol-1-36-cluster-class\nversion: v1\n",
		"docker-ferrol-1-36-cluster-class/templates/c.yaml": "v: v1 v1 v1\nscript: |\n  cat << EOF\n  text\n  EOF\n  << .Unknown >>\n",
	}, class); d != "" {
		t.Error("the class:", d)
	}
	addons := unpack(t, r.Files["docker-ferrol-1-36-cluster-addon-v1.tgz"])
	if addons["cni/values.yaml"] != "version: v1\n" || addons["stray.txt"] != "stays" || addons["cni/x.bak"]+addons["cni/templates/.x"] != "" {
		t.Errorf("the add-ons: %q", addons)
	}
	if got := string(r.Files["metadata.yaml"]); !strings.Contains(got, "kubernetes: v1.36.3\n") {
		t.Error(got)
	}
}

func unpack(t testing.TB, b []byte) map[string]string {
	t.Helper()
	tree, err := archive.Read(bytes.NewReader(b), archive.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, b := range tree {
		out[name] = string(b)
	}
	return out
}

// Dependencies become part of the charts that need them, in both conventions.
func TestBuildVendors(t *testing.T) {
	deps := stack.VendoredCharts{
		"cluster-class": {"charts/lib-1.0.0.tgz": []byte("class")}, "cluster-addon/cni": {"charts/cilium-1.0.0.tgz": []byte("staged")},
		"cluster-addon": {"charts/all-1.0.0.tgz": []byte("single")},
	}
	for staged, want := range map[bool]map[string]string{
		true:  {"docker-ferrol-1-36-cluster-class/charts/lib-1.0.0.tgz": "class", "cni/charts/cilium-1.0.0.tgz": "staged"},
		false: {"docker-ferrol-1-36-cluster-class/charts/lib-1.0.0.tgz": "class", "docker-ferrol-1-36-cluster-addon/charts/all-1.0.0.tgz": "single"},
	} {
		files := sourceFiles(map[string]string{"cluster-addon/Chart.yaml": "name: docker-ferrol-cluster-addon\nversion: v0\n"})
		if !staged {
			delete(files, "clusteraddon.yaml")
		}
		s, err := stack.ParseSource(files)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Plan(stack.ModeStable, stack.History{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Build(v, deps)
		if err != nil {
			t.Fatal(err)
		}
		got := unpack(t, r.Files["docker-ferrol-1-36-cluster-class-v1.tgz"])
		maps.Copy(got, unpack(t, r.Files["docker-ferrol-1-36-cluster-addon-v1.tgz"]))
		for name, text := range want {
			if got[name] != text {
				t.Errorf("staged %t: %s is %q", staged, name, got[name])
			}
		}
	}
}

// The same source gives the same bytes in another directory and another time zone.
func TestBuildIsReproducible(t *testing.T) {
	first := build(t, source(t, nil), stack.ModeHash, stack.History{})
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("elsewhere", 5*3600)
	dir := filepath.Join(t.TempDir(), "other", "place")
	if err := archive.WriteDir(dir, sourceFiles(nil)); err != nil {
		t.Fatal(err)
	}
	files, err := archive.ReadDir(dir, archive.DefaultLimits, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first.Files, build(t, s, stack.ModeHash, stack.History{}).Files); d != "" {
		t.Error(d)
	}
}

// What is built, loaded and built again is the same; files nobody knows survive.
func TestPackIsIdentity(t *testing.T) {
	r := build(t, source(t, nil), stack.ModeStable, stack.History{})
	files := maps.Clone(r.Files)
	files["topology-docker.yaml"] = []byte("nobody knows this")
	again, err := stack.Load(r.Name.Tag(), files)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := again.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, packed); d != "" {
		t.Error(d)
	}
}

func TestPlan(t *testing.T) {
	last := build(t, source(t, nil), stack.ModeStable, stack.History{})
	pre := func(words ...string) (out []version.Version) {
		for _, w := range words {
			v, err := version.Parse(w)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		return out
	}
	for name, tc := range map[string]struct {
		change  map[string]string
		mode    string
		history stack.History
		want    string // stack, add-ons, image; or the error
	}{
		"first": {mode: "stable", want: "v1 v1 v1"},
		"nothing": {mode: "stable", history: stack.History{Last: last},
			want: "nothing has changed since docker-ferrol-1-36-v1, so there is nothing to release"},
		"a file of no release": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"README.md": "other"},
			want: "nothing has changed since docker-ferrol-1-36-v1, so there is nothing to release"},
		"the class alone": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"cluster-class/values.yaml": "a: 1"},
			want: "v2 v1 v1"},
		"an add-on": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"cluster-addon/cni/values.yaml": "a: 1"},
			want: "v2 v2 v1"},
		"a stage alone": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"clusteraddon.yaml": "apiVersion: x\n"},
			want: "v2 v2 v1"},
		"a locked chart alone":  {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"stack.lock": "x"}, want: "v2 v2 v1"},
		"node images in a file": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"node-images.yaml": "x"}, want: "v2 v1 v2"},
		"node images": {mode: "stable", history: stack.History{Last: last}, change: map[string]string{"node-images/config.yaml": "x"},
			want: "v2 v1 v2"},
		"a patch of Kubernetes alone": {mode: "stable", history: stack.History{Last: last},
			change: map[string]string{"stack.yaml": "provider: docker\nclusterStackName: ferrol\nkubernetesVersion: v1.36.4\n"}, want: "v2 v1 v1"},
		"another minor's release": {mode: "stable", history: stack.History{Last: last},
			change: map[string]string{"stack.yaml": "provider: docker\nclusterStackName: ferrol\nkubernetesVersion: v1.37.0\n"},
			want:   "the last release is docker-ferrol-1-36-v1, and this is docker-ferrol-1-37"},
		"beta before the first": {mode: "beta", want: "v1-beta.1 v1-beta.1 v1-beta.1"},
		"beta after ten": {mode: "beta",
			history: stack.History{Last: last, Versions: pre("v1", "v2-beta.9", "v2-beta.10", "v2-rc.30", "v1-beta.40", "v2-beta.x")},
			want:    "v2-beta.11 v2-beta.11 v2-beta.11"},
		"a word with capitals": {mode: "Beta", want: `mode "Beta" is neither stable, hash nor a word of small letters for a pre-release, such as beta`},
		"no mode":              {mode: "", want: `mode "" is neither stable, hash nor a word of small letters for a pre-release, such as beta`},
		"a word that is none":  {mode: "a-b", want: `mode "a-b" is neither stable, hash nor a word of small letters for a pre-release, such as beta`},
		"Kubernetes that is not exact": {mode: "stable",
			change: map[string]string{"stack.yaml": "provider: docker\nclusterStackName: ferrol\nkubernetesVersion: '1.36'\n"},
			want:   "stack.yaml says Kubernetes 1.36, and a release is for an exact version; write it there, or choose it with --kubernetes, for example v1.36.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, tc.change)
			v, err := s.Plan(tc.mode, tc.history)
			got := ""
			if err != nil {
				got = err.Error()
				if strings.HasPrefix(tc.want, "nothing") != errors.Is(err, stack.ErrUnchanged) {
					t.Errorf("%v is not ErrUnchanged", err)
				}
			} else {
				got = v.ClusterStack.String() + " " + v.Components.ClusterAddon.String() + " " + v.Components.NodeImage.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	v, err := source(t, nil).Plan(stack.ModeHash, stack.History{})
	if err != nil || v.ClusterStack.Word != "sha" || v.ClusterStack.ID != stack.HashSource(sourceFiles(nil)).ShortHash() {
		t.Error(v, err)
	}
}

// A release of the tools that came before has no hash of its class; a change of that is one anyway.
func TestPlanAfterOlderTools(t *testing.T) {
	last := build(t, source(t, nil), stack.ModeStable, stack.History{})
	last.Files["hashes.json"] = []byte(`{"clusterStack":"` + stack.HashSource(sourceFiles(nil)).ClusterStack + `","clusterAddonDir":"` +
		stack.HashSource(sourceFiles(nil)).ClusterAddonDir + `","clusterAddonValues":""}`)
	s := source(t, map[string]string{"cluster-class/values.yaml": "a: 1"})
	if v, err := s.Plan(stack.ModeStable, stack.History{Last: last}); err != nil || v.ClusterStack.String() != "v2" {
		t.Error(v, err)
	}
	if _, err := source(t, nil).Plan(stack.ModeStable, stack.History{Last: last}); !errors.Is(err, stack.ErrUnchanged) {
		t.Error(err)
	}
}

// Helm refuses charts whose version has a number with a zero in front, which a hash may be.
func TestBuildVersions(t *testing.T) {
	s := source(t, nil)
	for text, ok := range map[string]bool{"v1": true, "v0-git.0123456": false, "v0-git.0123abc": true, "v0-git.1234567": true, "v0-git.0": true, "v2-a_b.1": false,
		"v2-Beta.1": false} {
		id, err := version.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.CustomVersions(id, version.Version{}, version.Version{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Build(v, nil); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := (stack.Hashes{ClusterStack: "0123456789a"}).ShortHash(); got != "0123456789a" {
		t.Error(got)
	}
	if got := (stack.Hashes{ClusterStack: "0123x56789a"}).ShortHash(); got != "0123x56" {
		t.Error(got)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change map[string]string
		want   string
	}{
		"a chart of another name": {map[string]string{"cluster-class/Chart.yaml": "name: docker-ferrol-1-34-cluster-class\nversion: v0\n"},
			`cluster-class/Chart.yaml:1: the chart's name must be docker-ferrol-1-36-cluster-class, not "docker-ferrol-1-34-cluster-class"`},
		"a chart in one line": {map[string]string{"cluster-class/Chart.yaml": "{name: docker-ferrol-cluster-class, version: v0}"},
			"name and version must each be a line of their own"},
		"a release nobody can use": {map[string]string{"stack.yaml": "provider: docker\nclusterStackName: " + strings.Repeat("x", 60) +
			"\nkubernetesVersion: v1.36.3\n"}, "objects take at most 63"},
		"stages without charts": {map[string]string{"clusteraddon.yaml": "x: ["}, "this is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, tc.change)
			v, err := s.Plan(stack.ModeStable, stack.History{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.Build(v, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
