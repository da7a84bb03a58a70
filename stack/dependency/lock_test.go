package dependency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
)

func TestLockKeepsWhatFits(t *testing.T) {
	r := withVersions(t, "1.0.0", "1.1.0", "2.0.0")
	was := dependency.LockedChart{
		Name: "x", Repository: r.url(), Wanted: "^1", Version: "1.0.0", Digest: sum(packed(t, "x", "1.0.0")), URL: r.url() + "/x-1.0.0.tgz",
	}
	for name, c := range map[string]struct {
		old     func(l dependency.LockedChart) dependency.LockedChart
		needs   []string
		upgrade bool
		want    []string
		asked   []string
	}{
		"as it was":          {nil, []string{requirementYAML(r.url(), "^1")}, false, []string{"x 1.0.0"}, []string{"x-1.0.0.tgz"}},
		"upgraded":           {nil, []string{requirementYAML(r.url(), "^1")}, true, []string{"x 1.1.0"}, []string{"index.yaml", "x-1.1.0.tgz"}},
		"another range":      {nil, []string{requirementYAML(r.url(), "^2")}, false, []string{"x 2.0.0"}, []string{"index.yaml", "x-2.0.0.tgz"}},
		"another repository": {nil, []string{requirementYAML(r.url()+"/", "^1")}, false, []string{"x 1.1.0"}, []string{"index.yaml", "x-1.1.0.tgz"}},
		"no longer needed":   {nil, nil, false, nil, nil},
		"needed twice":       {nil, []string{requirementYAML(r.url(), "^1"), requirementYAML(r.url(), "^1")}, false, []string{"x 1.0.0"}, []string{"x-1.0.0.tgz"}},
		"of another chart": {func(l dependency.LockedChart) dependency.LockedChart { l.Name = "y"; return l },
			[]string{requirementYAML(r.url(), "^1")}, false, []string{"x 1.1.0"}, []string{"index.yaml", "x-1.1.0.tgz"}},
		"a version by hand that does not fit": {func(l dependency.LockedChart) dependency.LockedChart { l.Version = "2.0.0"; return l },
			[]string{requirementYAML(r.url(), "^1")}, false, []string{"x 1.1.0"}, []string{"index.yaml", "x-1.1.0.tgz"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := was
			if c.old != nil {
				l = c.old(l)
			}
			old := dependency.Lock{Charts: map[string][]dependency.LockedChart{"cluster-addon/cni": {l}, "cluster-addon/gone": {l}}}
			r.asked()
			got, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, c.needs...), old, c.upgrade)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, versions(got)); d != "" || len(got.Charts) > 1 {
				t.Error(d, got)
			}
			asked := r.asked()
			for i, p := range asked {
				asked[i] = strings.TrimPrefix(p, "/charts/")
			}
			if d := cmp.Diff(c.asked, asked); d != "" {
				t.Error(d)
			}
		})
	}
}

// Nobody asks who has no reason to: everything is locked, and in the cache.
func TestLockWithoutNetwork(t *testing.T) {
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	f := fetcher(t, r.host())
	l := lock(t, f, s, dependency.Lock{})
	r.asked()
	again := lock(t, &dependency.Fetcher{Client: f.Client, Cache: f.Cache}, s, l)
	if d := cmp.Diff(l.Charts, again.Charts); d != "" || len(r.asked()) > 0 {
		t.Error(d, "or it asked")
	}
	again = lock(t, &dependency.Fetcher{Cache: f.Cache}, s, l)
	if d := cmp.Diff(l.Charts, again.Charts); d != "" {
		t.Error(d)
	}
	for _, repository := range []string{r.url(), "oci://" + r.host() + "/charts"} {
		_, err := (&dependency.Fetcher{Cache: f.Cache, Registry: f.Registry}).Lock(t.Context(), source(t, nil, requirementYAML(repository, "^1")), dependency.Lock{},
			true)
		fails(t, err, "it is not at hand; run polder stack lock, which fetches it")
	}
	if asked := r.asked(); len(asked) > 0 {
		t.Error(asked)
	}
}

// A version that has another content is refused, whether its lock is kept, renewed, or another
// chart's.
func TestRepublished(t *testing.T) {
	other := tgz(t, map[string]string{"x/Chart.yaml": "name: x\nversion: 1.0.0\n", "x/values.yaml": "evil: true\n"})
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	old := lock(t, fetcher(t, r.host()), s, dependency.Lock{})
	r.put("/charts/x-1.0.0.tgz", other)
	message := "x 1.0.0 of " + r.url() + " has another content than it was locked with, " + sum(other) + " instead of " + sum(packed(t, "x", "1.0.0")) +
		"; ask who publishes it, and if the change is right, remove its entry from stack.lock and run polder stack lock"
	for name, c := range map[string]struct {
		old     dependency.Lock
		wanted  string
		upgrade bool
		message string
	}{
		"kept":             {old, "^1", false, message},
		"renewed":          {old, "^1", true, message},
		"by another range": {old, "~1.0", false, message},
		"of another chart": {dependency.Lock{Charts: map[string][]dependency.LockedChart{"cluster-class": old.Charts["cluster-addon/cni"]}}, "^1", false,
			message},
		"with its entry removed": {dependency.Lock{}, "^1", false, ""},
		"of a chart of the same name": {dependency.Lock{Charts: map[string][]dependency.LockedChart{"cluster-class": {{Name: "x", Version: "1.0.0",
			Repository: "https://x.example", Digest: sum(nil)}}}}, "^1", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(r.url(), c.wanted)), c.old, c.upgrade)
			if c.message == "" {
				if err != nil || l.Charts["cluster-addon/cni"][0].Digest != sum(other) {
					t.Error(l, err)
				}
				return
			}
			fails(t, err, c.message)
		})
	}
}

func TestLockRoundTrip(t *testing.T) {
	l := dependency.Lock{APIVersion: "polder.dev/v1alpha1", Kind: "StackLock", Charts: map[string][]dependency.LockedChart{
		"cluster-addon/cni": {
			{Name: "x", Repository: "https://x.example", Wanted: "", Version: "1.10.0", Digest: sum(nil), URL: "https://x.example/x.tgz"},
			{Name: "y", Repository: "oci://y.example/charts", Wanted: ">=1, <2 || 3.x", Version: "v1.0.0-rc.1+build", Digest: sum([]byte("y"))},
		},
		"cluster-class": {{Name: "z", Repository: "file://../z", Wanted: "1.10", Version: "1.10", Digest: sum([]byte("z"))}},
	}}
	b, err := l.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b),
		"# Written by polder stack lock. Commit it; do not edit it.\napiVersion: polder.dev/v1alpha1\ncharts:\n  cluster-addon/cni:\n  - digest: ") {
		t.Errorf("%s", b)
	}
	got, err := dependency.ParseLock(archive.Tree{stack.LockFile: b})
	if d := cmp.Diff(l, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if got, err := dependency.ParseLock(nil); len(got.Charts) > 0 || err != nil {
		t.Error("there need not be one:", got, err)
	}
}

const soundLock = "apiVersion: polder.dev/v1alpha1\nkind: StackLock\ncharts:\n  cluster-class:\n  - name: x\n    repository: https://x.example\n    wanted: ^1\n    version: 1.0.0\n    digest: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"

func TestParseLockRefuses(t *testing.T) {
	bomb := "a: &a [1]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Join(slices.Repeat([]string{"*" + string(c-1)}, 9), ", "))
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing": {"", "stack.lock: there must be one YAML document, and there are 0"},
		"no YAML": {"a: [", "stack.lock:2: this is not YAML: did not find expected node content"},
		"no lock": {"name: x\n",
			`stack.lock:1: this is "" of "", and not StackLock of polder.dev/v1alpha1; if no newer version of polder wrote it, it is broken`},
		"of the future": {strings.Replace(soundLock, "v1alpha1", "v2", 1),
			`stack.lock:1: this is "StackLock" of "polder.dev/v2", and not StackLock of polder.dev/v1alpha1; if no newer version of polder wrote it, it is broken`},
		"Helm's": {"dependencies: []\ndigest: sha256:0\ngenerated: now\n",
			`stack.lock:1: this is "" of "", and not StackLock of polder.dev/v1alpha1; if no newer version of polder wrote it, it is broken`},
		"a list":    {strings.Replace(soundLock, "cluster-class:\n  - name", "cluster-class:\n    name", 1), "stack.lock:3: charts must be a list, not object"},
		"no digest": {soundLock[:strings.Index(soundLock, "    digest")], `stack.lock:5: "" is no digest of a chart`},
		"half a digest": {soundLock[:len(soundLock)-2],
			`stack.lock:9: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85" is no digest of a chart`},
		"a path": {strings.Replace(soundLock, "sha256:e3", "sha256:../e3", 1),
			`stack.lock:9: "sha256:../e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" is no digest of a chart`},
		"a path as name":  {strings.Replace(soundLock, "name: x", "name: ../../x", 1), `stack.lock:5: "../../x" is no name of a chart`},
		"as version":      {strings.Replace(soundLock, "1.0.0", "1.0.0/../../x", 1), `stack.lock:8: "1.0.0/../../x" is no version of a chart`},
		"a number":        {strings.Replace(soundLock, "1.0.0", "1.0", 1), "stack.lock:3: charts.version must be a string, not number"},
		"an alias bomb":   {bomb, "stack.lock:2: there are more than 200000 values; aliases count as often as they are used"},
		"many characters": {soundLock + "#" + strings.Repeat("x", 256<<10), "stack.lock: it has 262382 bytes, and at most 262144 are taken"},
		"a name twice":    {soundLock + "kind: StackLock\n", `stack.lock:10: "kind" is here a second time, after line 2`},
	} {
		t.Run(name, func(t *testing.T) {
			c.want += "; remove it, and run polder stack lock"
			l, err := dependency.ParseLock(archive.Tree{stack.LockFile: []byte(c.text)})
			if err == nil || err.Error() != c.want || len(l.Charts) > 0 {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			s := source(t, map[string]string{stack.LockFile: c.text}, requirementYAML("https://x.example", "^1"))
			if _, err := new(dependency.Fetcher).Vendor(t.Context(), s); err == nil || err.Error() != c.want {
				t.Errorf("vendor: %v", err)
			}
		})
	}
}

// What is taken for a lock stays the same when it is written.
func FuzzParseLock(f *testing.F) {
	for _, text := range []string{
		soundLock, "", "a: [", "[]", "charts: 1\n", "apiVersion: polder.dev/v1alpha1\nkind: StackLock\ncharts: {a: [~]}\n",
		strings.Replace(soundLock, "x", `"\x00\u2028"`, 1), strings.Replace(soundLock, "1.0.0", "v1.2.3-rc.1+a", 1),
		"a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n", soundLock + "url: &u {<<: *u}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := dependency.ParseLock(archive.Tree{stack.LockFile: b})
		if err != nil {
			if len(l.Charts) > 0 || !strings.HasPrefix(err.Error(), "stack.lock") {
				t.Errorf("%v, %v", l, err)
			}
			return
		}
		again, err := l.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := dependency.ParseLock(archive.Tree{stack.LockFile: again})
		if d := cmp.Diff(l, got); d != "" || err != nil {
			t.Error(d, err)
		}
	})
}
