package dependency_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
)

// besides gives the files of a chart x that is none of the add-ons.
func besides(version string) map[string]string {
	return map[string]string{
		"shared/x/Chart.yaml":       "apiVersion: v2\nname: x\nversion: " + version + "\n",
		"shared/x/templates/o.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	}
}

func TestPath(t *testing.T) {
	f := &dependency.Fetcher{Cache: dependency.Cache(t.TempDir())} // a path needs no network
	for name, c := range map[string]struct {
		file, repository string
	}{
		"beside":             {"cluster-addon/x/", "file://../x"},
		"with a slash":       {"cluster-addon/x/", "file://../x/"},
		"at the top":         {"shared/x/", "file://../../shared/x"},
		"through the class":  {"cluster-class/lib/x/", "file://../../cluster-class/lib/../lib/x"},
		"below the chart":    {"cluster-addon/cni/lib/x/", "file://lib/x"},
		"below, with a dot":  {"cluster-addon/cni/lib/x/", "file://./lib/x"},
		"out and back again": {"cluster-addon/x/", "file://../../cluster-addon/x"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{c.file + "Chart.yaml": "name: x\nversion: 1.2.0\n", c.file + "values.yaml": "a: b\n"}
			s := source(t, files, requirementYAML(c.repository, "^1"))
			l := lock(t, f, s, dependency.Lock{})
			b := vendor(t, f, with(t, s, l))["cluster-addon/cni"]["charts/x-1.2.0.tgz"]
			got, err := archive.Read(bytes.NewReader(b), archive.DefaultLimits)
			want := archive.Tree{"x/Chart.yaml": []byte("name: x\nversion: 1.2.0\n"), "x/values.yaml": []byte("a: b\n")}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Error(d, err)
			}
			if d := cmp.Diff([]dependency.LockedChart{{Name: "x", Repository: c.repository, Wanted: "^1", Version: "1.2.0", Digest: sum(b)}},
				l.Charts["cluster-addon/cni"]); d != "" {
				t.Error(d)
			}
		})
	}
	if kept, err := os.ReadDir(string(f.Cache)); len(kept) > 0 || err != nil {
		t.Errorf("the cache has what could become stale: %v, %v", kept, err)
	}
}

func TestPathRefused(t *testing.T) {
	random := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for name, c := range map[string]struct {
		change                       map[string]string
		repository, version, message string
	}{
		"outside": {nil, "file://../../../x", "^1", "file://../../../x leads out of the stack; a stack must be complete in its directory"},
		"far outside": {nil, "file://../../../../../../etc", "^1",
			"file://../../../../../../etc leads out of the stack; a stack must be complete in its directory"},
		"just outside": {nil, "file://../../..", "^1", "file://../../.. leads out of the stack; a stack must be complete in its directory"},
		"absolute":     {nil, "file:///etc", "^1", "file:///etc leads out of the stack; a stack must be complete in its directory"},
		"missing": {nil, "file://../y", "^1",
			"there is no cluster-addon/y/Chart.yaml where file://../y leads; the path begins at the chart that needs it"},
		"the whole stack": {nil, "file://../..", "^1", "there is no Chart.yaml where file://../.. leads; the path begins at the chart that needs it"},
		"nothing":         {nil, "file://", "^1", "file:// is the chart itself, which cannot need itself"},
		"itself":          {nil, "file://../cni/.", "^1", "file://../cni/. is the chart itself, which cannot need itself"},
		"another name": {map[string]string{"shared/x/Chart.yaml": "name: y\nversion: 1.0.0\n"}, "file://../../shared/x", "^1",
			`the chart in shared/x is called "y"; use that name`},
		"another version": {besides("2.0.0"), "file://../../shared/x", "^1", "file://../../shared/x does not have version ^1 of x; its newest is 2.0.0"},
		"no version":      {besides("new"), "file://../../shared/x", "^1", "file://../../shared/x does not have version ^1 of x; it has none at all"},
		"no sound Chart.yaml": {map[string]string{"shared/x/Chart.yaml": "a: 1\na: 2\n"}, "file://../../shared/x", "^1",
			`the chart in shared/x cannot be used: Chart.yaml:2: "a" is here a second time, after line 1`},
		"needs more": {map[string]string{"shared/x/Chart.yaml": "name: x\nversion: 1.0.0\ndependencies: [{name: z, version: 1.0.0, repository: 'https://z.example'}]\n"}, "file://../../shared/x", "^1",
			`the chart in shared/x itself needs "z", which is not in shared/x/charts; add it there`},
		"to be filled in": {map[string]string{"shared/x/Chart.yaml": "name: x\nversion: 1.0.0\n", "shared/x/values.yaml": "image: v<< .NodeImageVersion >>\n"},
			"file://../../shared/x", "^1",
			"shared/x/values.yaml has << .NodeImageVersion >> in it, which a build does not fill in in charts that others need; write a value instead"},
		"too large": {map[string]string{"shared/x/Chart.yaml": "name: x\nversion: 1.0.0\n", "shared/x/a": string(random), "shared/x/b": string(random)},
			"file://../../shared/x", "^1",
			"the chart in shared/x has 6293682 bytes when it is packed; at most 5242880 are taken"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, c.change, requirementYAML(c.repository, c.version))
			_, err := new(dependency.Fetcher).Lock(t.Context(), s, dependency.Lock{}, false)
			fails(t, err, c.message)
		})
	}
}

// A chart of the stack is never taken from the cache: it may have changed since it was locked.
func TestPathChanged(t *testing.T) {
	f := &dependency.Fetcher{Cache: dependency.Cache(t.TempDir())}
	s := source(t, besides("1.0.0"), requirementYAML("file://../../shared/x", "*"))
	l := lock(t, f, s, dependency.Lock{})
	was := vendor(t, f, with(t, s, l))["cluster-addon/cni"]["charts/x-1.0.0.tgz"]
	if err := os.WriteFile(filepath.Join(string(f.Cache), strings.Replace(sum(was), ":", "-", 1)+".tgz"), was, 0o644); err != nil {
		t.Fatal(err) // somebody else may have put it there
	}
	for name, change := range map[string]map[string]string{
		"a file":      {"shared/x/templates/o.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"},
		"a new file":  {"shared/x/values.yaml": "a: b\n"},
		"its version": {"shared/x/Chart.yaml": "name: x\nversion: 1.0.1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := besides("1.0.0")
			maps.Copy(files, change)
			changed := source(t, files, requirementYAML("file://../../shared/x", "*"))
			v, err := f.Vendor(t.Context(), with(t, changed, l))
			fails(t, err, "the chart that file://../../shared/x leads to has changed since it was locked; run polder stack lock")
			if len(v) > 0 {
				t.Error("there is a chart nevertheless")
			}
			vendor(t, f, with(t, changed, lock(t, f, changed, l))) // without upgrade
		})
	}
}

// Nothing outside of the stack is read, however it is pointed to.
func TestLinksAreNotFollowed(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	for name, b := range source(t, nil, requirementYAML("file://../x", "*")).Files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(inside, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(inside, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "Chart.yaml"), []byte("name: x\nversion: 1.0.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(inside, "cluster-addon", "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.ReadDir(inside, archive.DefaultLimits, nil); err == nil || !strings.Contains(err.Error(), `"cluster-addon/x" is a symbolic link`) {
		t.Error(err)
	}
	skip := func(name string, _ bool) bool { return name == "cluster-addon/x" }
	files, err := archive.ReadDir(inside, archive.DefaultLimits, skip)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		t.Fatal(err)
	}
	_, err = new(dependency.Fetcher).Lock(t.Context(), s, dependency.Lock{}, false)
	fails(t, err, "there is no cluster-addon/x/Chart.yaml where file://../x leads; the path begins at the chart that needs it")
}
