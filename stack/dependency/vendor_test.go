package dependency_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/render"
)

func TestVendor(t *testing.T) {
	r := withVersions(t, "1.0.0", "2.0.0+a")
	s := source(t, map[string]string{
		"cluster-class/Chart.yaml": "name: docker-ferrol-1-36-cluster-class\nversion: v1\ndependencies:\n- " + requirementYAML(r.url(), "^1") + "\n",
	}, requirementYAML(r.url(), "^2"))
	f := fetcher(t, r.host())
	s = with(t, s, lock(t, f, s, dependency.Lock{}))
	want := stack.VendoredCharts{
		"cluster-class":     archive.Tree{"charts/x-1.0.0.tgz": packed(t, "x", "1.0.0")},
		"cluster-addon/cni": archive.Tree{"charts/x-2.0.0+a.tgz": packed(t, "x", "2.0.0+a")},
	}
	r.asked()
	for name, f := range map[string]*dependency.Fetcher{"from the cache": f, "without a client": {Cache: f.Cache}} {
		if d := cmp.Diff(want, vendor(t, f, s)); d != "" {
			t.Error(name, d)
		}
	}
	if asked := r.asked(); len(asked) > 0 {
		t.Errorf("%s was asked for", asked)
	}
	empty := fetcher(t, r.host())
	for range 2 { // the second time it is in the cache
		if d := cmp.Diff(want, vendor(t, empty, s)); d != "" {
			t.Error("from the repository", d)
		}
	}
	if d := cmp.Diff([]string{"/charts/x-1.0.0.tgz", "/charts/x-2.0.0+a.tgz"}, r.asked()); d != "" {
		t.Error("no list is needed for what is locked", d)
	}
}

func TestVendorRefuses(t *testing.T) {
	r := withVersions(t, "1.0.0", "1.1.0")
	one := packed(t, "x", "1.0.0")
	entry := func(change func(l *dependency.LockedChart)) dependency.Lock {
		l := dependency.LockedChart{Name: "x", Repository: r.url(), Wanted: "^1", Version: "1.0.0", Digest: sum(one), URL: r.url() + "/x-1.0.0.tgz"}
		change(&l)
		return dependency.Lock{Charts: map[string][]dependency.LockedChart{"cluster-addon/cni": {l}}}
	}
	notLocked := "x ^1 of " + r.url() + " is neither in cluster-addon/cni/charts nor locked; run polder stack lock"
	for name, c := range map[string]struct {
		lock    dependency.Lock
		message string
	}{
		"no lock":            {dependency.Lock{}, notLocked},
		"another range":      {entry(func(l *dependency.LockedChart) { l.Wanted = "^2" }), notLocked},
		"another repository": {entry(func(l *dependency.LockedChart) { l.Repository = "https://x.example" }), notLocked},
		"another chart":      {entry(func(l *dependency.LockedChart) { l.Name = "y" }), notLocked},
		"not in the range":   {entry(func(l *dependency.LockedChart) { l.Version = "2.0.0" }), notLocked},
		"another digest": {entry(func(l *dependency.LockedChart) { l.Digest = sum(nil) }),
			"x 1.0.0 of " + r.url() + " has another content than it was locked with, " + sum(one) + " instead of " + sum(nil) +
				"; ask who publishes it, and if the change is right, remove its entry from stack.lock and run polder stack lock"},
		"the digest of another version": {entry(func(l *dependency.LockedChart) { l.Version = "1.1.0" }),
			"what " + r.url() + ` has as x 1.1.0 is another chart, "x" in version "1.0.0"; ask who publishes it`},
		"it has moved": {entry(func(l *dependency.LockedChart) { l.URL = r.url() + "/old/x.tgz?token=secret" }),
			"fetching " + r.url() + "/old/x.tgz: " + r.host() + " answers 404 Not Found; if it has moved, run polder stack lock --upgrade"},
		"another way": {entry(func(l *dependency.LockedChart) { l.URL = "file:///etc/passwd" }),
			"fetching file:///etc/passwd: this is no URL with a host; write https://host/path"},
	} {
		t.Run(name, func(t *testing.T) {
			s := with(t, source(t, nil, requirementYAML(r.url(), "^1")), c.lock)
			v, err := fetcher(t, r.host()).Vendor(t.Context(), s)
			fails(t, err, c.message)
			if len(v) > 0 {
				t.Errorf("there is something nevertheless: %v", v)
			}
		})
	}
	s := with(t, source(t, nil, requirementYAML(r.url(), "^1")), entry(func(*dependency.LockedChart) {}))
	_, err := new(dependency.Fetcher).Vendor(t.Context(), s)
	fails(t, err, "it is not at hand; run polder stack lock, which fetches it")
}

// What cannot be had is an error; the rest is returned with it, for linting and the like.
func TestVendorGivesTheRest(t *testing.T) {
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	l := lock(t, fetcher(t, r.host()), s, dependency.Lock{})
	s = with(t, source(t, nil, requirementYAML(r.url(), "^1"), "{name: y, version: ^1, repository: 'https://y.example'}",
		"{name: z, version: ^1, repository: '@z'}"), l)
	v, err := fetcher(t, r.host()).Vendor(t.Context(), s)
	if err == nil || len(strings.Split(err.Error(), "\n")) != 2 || !strings.Contains(err.Error(), chartYAML+":6: dependency y: ") ||
		!strings.Contains(err.Error(), chartYAML+":7: dependency z: ") {
		t.Errorf("a line for each: %v", err)
	}
	if d := cmp.Diff([]string{"charts/x-1.0.0.tgz"}, v["cluster-addon/cni"].Names()); d != "" {
		t.Error(d)
	}
}

// A file of the cache counts only if it is what its name says.
func TestCacheIsChecked(t *testing.T) {
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	sound := packed(t, "x", "1.0.0")
	for name, spoil := range map[string]func(t *testing.T, file string) error{
		"changed": func(_ *testing.T, file string) error {
			return os.WriteFile(file, bytes.Replace(sound, sound[40:41], []byte{sound[40] ^ 1}, 1), 0o644)
		},
		"cut":   func(_ *testing.T, file string) error { return os.Truncate(file, 10) },
		"empty": func(_ *testing.T, file string) error { return os.Truncate(file, 0) },
		"huge":  func(_ *testing.T, file string) error { return os.Truncate(file, 1<<40) },
		"gone":  func(_ *testing.T, file string) error { return os.Remove(file) },
		"a directory": func(t *testing.T, file string) error {
			t.Cleanup(func() { _ = os.Remove(file) })
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fetcher(t, r.host())
			locked := with(t, s, lock(t, f, s, dependency.Lock{}))
			file := filepath.Join(string(f.Cache), strings.Replace(sum(sound), ":", "-", 1)+".tgz")
			if err := spoil(t, file); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := (&dependency.Fetcher{Cache: f.Cache}).Vendor(t.Context(), locked)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
				t.Errorf("it took %d MiB", got)
			}
			fails(t, err, "it is not at hand; run polder stack lock, which fetches it")
			r.asked()
			v, err := f.Vendor(t.Context(), locked)
			if name == "a directory" {
				if err == nil || !strings.Contains(err.Error(), "dependency x: keeping the chart for builds: ") {
					t.Error(err)
				}
			} else if !bytes.Equal(v["cluster-addon/cni"]["charts/x-1.0.0.tgz"], sound) || err != nil || len(r.asked()) != 1 {
				t.Error("it was not fetched anew:", err)
			}
			entries, err := os.ReadDir(string(f.Cache))
			if len(entries) != 1 || err != nil {
				t.Errorf("there are leftovers: %v, %v", entries, err)
			}
			if name != "a directory" {
				vendor(t, &dependency.Fetcher{Cache: f.Cache}, locked)
			}
		})
	}
}

// The same chart under two names is one chart; in two versions it is two.
func TestAliases(t *testing.T) {
	r := withVersions(t, "1.0.0", "2.0.0")
	named := func(alias, version string) string {
		return strings.Replace(requirementYAML(r.url(), version), "{", "{alias: "+alias+", condition: "+alias+".enabled, ", 1)
	}
	for name, c := range map[string]struct{ versions, locked, files []string }{
		"the same":     {[]string{"^1", "^1"}, []string{"x 1.0.0"}, []string{"charts/x-1.0.0.tgz"}},
		"other ranges": {[]string{"^1", "~1.0"}, []string{"x 1.0.0", "x 1.0.0"}, []string{"charts/x-1.0.0.tgz"}},
		"two versions": {[]string{"^1", "^2"}, []string{"x 1.0.0", "x 2.0.0"}, []string{"charts/x-1.0.0.tgz", "charts/x-2.0.0.tgz"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, nil, named("a", c.versions[0]), named("b", c.versions[1]))
			f := fetcher(t, r.host())
			l := lock(t, f, s, dependency.Lock{})
			if d := cmp.Diff(c.locked, versions(l)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.files, vendor(t, f, with(t, s, l))["cluster-addon/cni"].Names()); d != "" {
				t.Error(d)
			}
			if again := lock(t, &dependency.Fetcher{Cache: f.Cache}, s, l); cmp.Diff(l, again) != "" {
				t.Error(cmp.Diff(l, again))
			}
		})
	}
}

const class = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: docker-ferrol-1-36-v1}\nspec: {}\n"

// A release has all that its charts need, and renders without anybody to ask.
func TestBuildWithDependencies(t *testing.T) {
	helm, oci := withVersions(t, "1.0.0", "1.1.0"), startRegistry(t)
	oci.push("w", "2.0.0", packed(t, "w", "2.0.0"))
	head := "apiVersion: v2\nname: NAME\nversion: 1.0.0\ndependencies:\n" +
		"- {name: x, version: ^1, repository: " + helm.url() + ", alias: first}\n" +
		"- {name: x, version: ^1, repository: " + helm.url() + ", alias: second}\n" +
		"- {name: x, version: ^1, repository: " + helm.url() + ", alias: third, condition: third.enabled}\n" +
		"- {name: w, version: ^2, repository: " + oci.url() + "}\n" +
		"- {name: z, version: '*', repository: PATH}\n"
	staged := source(t, map[string]string{
		"cluster-class/templates/class.yaml": class, "lib/z/Chart.yaml": "apiVersion: v2\nname: z\nversion: 3.0.0\n",
		"lib/z/templates/o.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n",
		chartYAML:                       strings.NewReplacer("NAME", "cni", "PATH", "file://../../lib/z").Replace(head),
		"cluster-addon/cni/values.yaml": "third: {enabled: false}\n",
	})
	one := *staged
	one.Files = archive.Tree{}
	for name, b := range staged.Files {
		if !strings.HasPrefix(name, "cluster") || strings.HasPrefix(name, "cluster-class") {
			one.Files[name] = b
		}
	}
	one.Files["cluster-addon/Chart.yaml"] = []byte(strings.NewReplacer("NAME", "docker-ferrol-1-36-cluster-addon", "PATH", "file://../lib/z").Replace(head))
	one.Files["cluster-addon/values.yaml"] = []byte("third: {enabled: false}\n")
	for name, s := range map[string]*stack.Source{"stages": staged, "one chart": &one} {
		t.Run(name, func(t *testing.T) {
			f := fetcher(t, helm.host(), oci.host())
			s := with(t, s, lock(t, f, s, dependency.Lock{}))
			helm.asked()
			oci.requests.Store(0)
			v, err := s.Plan(stack.ModeStable, stack.History{})
			if err != nil {
				t.Fatal(err)
			}
			built, err := s.Build(v, vendor(t, &dependency.Fetcher{Cache: f.Cache}, s))
			if err != nil {
				t.Fatal(err)
			}
			r, err := stack.Load(built.Name.Tag(), built.Files)
			if err != nil {
				t.Fatal(err)
			}
			stages, found, err := r.RenderAddons(t.Context(), new(render.Renderer), stack.AddonInput{
				Cluster: stack.ClusterData{Cluster: map[string]any{}}, Record: render.FixedRecord(),
			})
			if err != nil || len(found) > 0 {
				t.Fatal(found, err)
			}
			var got []string
			for _, o := range stages[0].Objects {
				got = append(got, o.Value["metadata"].(map[string]any)["name"].(string))
			}
			slices.Sort(got)
			if d := cmp.Diff([]string{"first-1.1.0", "second-1.1.0", "w-2.0.0", "z"}, got); d != "" {
				t.Error(d)
			}
			if len(helm.asked()) > 0 || oci.requests.Load() > 0 {
				t.Error("somebody was asked")
			}
		})
	}
}
