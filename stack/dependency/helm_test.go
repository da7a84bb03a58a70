package dependency_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/dependency"
)

func TestHelmRepository(t *testing.T) {
	x := packed(t, "x", "1.2.3")
	elsewhere := serve(t)
	elsewhere.put("/far/x.tgz", x)
	for name, c := range map[string]struct{ entry, slash, want string }{
		"a relative address":             {entry("1.2.3", "x-1.2.3.tgz", ""), "", "/charts/x-1.2.3.tgz"},
		"a slash at the end":             {entry("1.2.3", "x-1.2.3.tgz", ""), "/", "/charts/x-1.2.3.tgz"},
		"an address from the top":        {entry("1.2.3", "/top/x.tgz", ""), "", "/top/x.tgz"},
		"a digest":                       {entry("1.2.3", "x-1.2.3.tgz", strings.TrimPrefix(sum(x), "sha256:")), "", "/charts/x-1.2.3.tgz"},
		"a digest with its kind":         {entry("1.2.3", "x-1.2.3.tgz", sum(x)), "", "/charts/x-1.2.3.tgz"},
		"a digest in capitals":           {entry("1.2.3", "x-1.2.3.tgz", strings.ToUpper(strings.TrimPrefix(sum(x), "sha256:"))), "", "/charts/x-1.2.3.tgz"},
		"an address of another host":     {entry("1.2.3", elsewhere.URL+"/far/x.tgz", sum(x)), "", elsewhere.URL + "/far/x.tgz"},
		"the first address counts":       {`{version: 1.2.3, urls: [x-1.2.3.tgz, gone.tgz]}`, "", "/charts/x-1.2.3.tgz"},
		"a number that is no number":     {`{version: 1.2.3, appVersion: 1.10, urls: [x-1.2.3.tgz], annotations: {a: 1e999}}`, "", "/charts/x-1.2.3.tgz"},
		"a newer one without an address": {entry("1.2.3", "x-1.2.3.tgz", "") + ", {version: 1.9.0, urls: []}, {version: 1.9.1}", "", "/charts/x-1.2.3.tgz"},
		"entries that are none": {entry("1.2.3", "x-1.2.3.tgz", "") +
			", 1, [], {urls: [x.tgz]}, {version: {a: b}, urls: {c: d}}, {version: latest, urls: [x.tgz]}", "", "/charts/x-1.2.3.tgz"},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, c.entry)
			r.put("/charts/x-1.2.3.tgz", x)
			r.put("/top/x.tgz", x)
			if strings.HasPrefix(c.want, "/") {
				c.want = r.URL + c.want
			}
			repository := r.url() + c.slash
			got := lock(t, fetcher(t, r.host(), elsewhere.host()), source(t, nil, requirementYAML(repository, "^1")), dependency.Lock{})
			want := dependency.LockedChart{Name: "x", Repository: repository, Wanted: "^1", Version: "1.2.3", Digest: sum(x), URL: c.want}
			if d := cmp.Diff(map[string][]dependency.LockedChart{"cluster-addon/cni": {want}}, got.Charts); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestHelmRepositoryRefused(t *testing.T) {
	wrong := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		want    string // version
		entries []string
		files   map[string][]byte
		message string
	}{
		"a digest that is not listed": {"^1", []string{entry("1.2.3", "x.tgz", wrong)}, map[string][]byte{"x.tgz": packed(t, "x", "1.2.3")},
			"x 1.2.3 of REPO has the digest " + sum(packed(t, "x", "1.2.3")) + ", and the repository lists sha256:" + wrong + "; ask who publishes it"},
		"a digest of another kind": {"^1", []string{entry("1.2.3", "x.tgz", "md5:abc")}, map[string][]byte{"x.tgz": packed(t, "x", "1.2.3")},
			"x 1.2.3 of REPO has the digest " + sum(packed(t, "x", "1.2.3")) + ", and the repository lists sha256:md5:abc; ask who publishes it"},
		"another name": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{"x.tgz": packed(t, "evil", "1.2.3")},
			"what REPO has as x 1.2.3 is no such chart: there is no x/Chart.yaml in it"},
		"another name in the right directory": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{
			"x.tgz": tgz(t, map[string]string{"x/Chart.yaml": "name: х\nversion: 1.2.3\n"}),
		},
			`what REPO has as x 1.2.3 is another chart, "х" in version "1.2.3"; ask who publishes it`},
		"another version": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{"x.tgz": packed(t, "x", "0.0.1")},
			`what REPO has as x 1.2.3 is another chart, "x" in version "0.0.1"; ask who publishes it`},
		"no Chart.yaml": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{"x.tgz": tgz(t, map[string]string{"x/values.yaml": ""})},
			"what REPO has as x 1.2.3 is no such chart: there is no x/Chart.yaml in it"},
		"an empty Chart.yaml": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{"x.tgz": tgz(t, map[string]string{"x/Chart.yaml": ""})},
			"what REPO has as x 1.2.3 cannot be used: Chart.yaml: there must be one YAML document, and there are 0"},
		"a huge Chart.yaml": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{
			"x.tgz": tgz(t, map[string]string{"x/Chart.yaml": "name: x\nversion: 1.2.3\n#" + strings.Repeat("x", 256<<10)}),
		},
			"what REPO has as x 1.2.3 cannot be used: Chart.yaml has 262168 bytes; at most 262144 are taken"},
		"no archive": {"^1", []string{entry("1.2.3", "x.tgz", "")}, map[string][]byte{"x.tgz": []byte("<html>not here</html>")},
			"what REPO has as x 1.2.3 cannot be used: it is not a gzip-compressed archive: gzip: invalid header"},
		"a chart that is not there": {"^1", []string{entry("1.2.3", "x.tgz", "")}, nil,
			"fetching REPO/x.tgz: HOST answers 404 Not Found"},
		"no version that fits": {"^3", []string{entry("1.2.3", "x.tgz", ""), entry("2.0.0", "x.tgz", ""), entry("1.9.9", "x.tgz", "")}, nil,
			"REPO does not have version ^3 of x; its newest is 2.0.0"},
		"only a pre-release": {"^2", []string{entry("2.1.0-rc.1", "x.tgz", "")}, nil,
			"REPO does not have version ^2 of x; its newest is the pre-release 2.1.0-rc.1, which is taken only by a range that names one, such as >=2.1.0-0"},
		"only a pre-release, for any": {"", []string{entry("2.1.0-rc.1", "x.tgz", "")}, nil,
			"REPO does not have any version of x; its newest is the pre-release 2.1.0-rc.1, which is taken only by a range that names one, such as >=2.1.0-0"},
		"no versions": {"^1", nil, nil,
			"REPO does not have version ^1 of x; it has none at all"},
		"no range": {"new", []string{entry("1.2.3", "x.tgz", "")}, nil,
			`"new" is no version and no range of them`},
		"a file's address": {"^1", []string{entry("1.2.3", "file:///etc/passwd", "")}, nil,
			"REPO lists it at an address that is neither https://… nor oci://…"},
		"another scheme": {"^1", []string{entry("1.2.3", "ftp://x.example/x.tgz", "")}, nil,
			"REPO lists it at an address that is neither https://… nor oci://…"},
		"no address": {"^1", []string{entry("1.2.3", "http://[", "")}, nil,
			"REPO lists it at an address that is neither https://… nor oci://…"},
		"an address with a password": {"^1", []string{entry("1.2.3", "https://u:secret@host/x.tgz", "")}, nil,
			"REPO lists it at an address with credentials"},
		"an address with a signature": {"^1", []string{entry("1.2.3", "x.tgz?signature=secret", "")}, nil,
			"fetching REPO/x.tgz: HOST answers 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, c.entries...)
			for file, b := range c.files {
				r.put("/charts/"+file, b)
			}
			l, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(r.url(), c.want)), dependency.Lock{}, false)
			fails(t, err, strings.NewReplacer("REPO", r.url(), "HOST", r.host()).Replace(c.message))
			if len(l.Charts) != 0 {
				t.Errorf("locked %v", l.Charts)
			}
		})
	}
}

func TestHelmIndexRefused(t *testing.T) {
	for name, c := range map[string]struct{ index, message string }{
		"no YAML": {"<html>\n<body>a: b: c",
			"the index.yaml of REPO cannot be used: it is not YAML: line 2: mapping values are not allowed in this context"},
		"a page":           {"<html>", "the index.yaml of REPO cannot be used: it has no entries, so this is no Helm repository; check the address"},
		"nothing":          {"", "the index.yaml of REPO cannot be used: it has no entries, so this is no Helm repository; check the address"},
		"a list":           {"[]", "the index.yaml of REPO cannot be used: it has no entries, so this is no Helm repository; check the address"},
		"entries are text": {"entries: none", "the index.yaml of REPO cannot be used: it has no entries, so this is no Helm repository; check the address"},
		"not UTF-8":        {"entries: {x: \"\xff\"}", "the index.yaml of REPO cannot be used: it is not UTF-8"},
		"another chart":    {"entries: {y: []}", "REPO has no chart x; check the name, and the address of the repository"},
		"no charts":        {"apiVersion: v1\nentries: {}", "REPO has no chart x; check the name, and the address of the repository"},
		"null":             {"apiVersion: v1\nentries:\n", "REPO has no chart x; check the name, and the address of the repository"},
		"no list":          {"entries: {x: {version: 1.0.0}}", "REPO does not have version ^1 of x; it has none at all"},
		"a chart twice":    {"entries:\n  x: []\n  x: []\n", `the index.yaml of REPO cannot be used: line 3: the chart "x" is listed a second time`},
		"aliases":          {"a: &a [1]\nentries:\n  x: *a\n", "the index.yaml of REPO cannot be used: line 3: aliases of YAML are not taken here"},
		"a merge":          {"a: &a {x: []}\nentries:\n  <<: *a\n", "the index.yaml of REPO cannot be used: line 3: aliases of YAML are not taken here"},
		"in circles":       {"entries: &a\n  x: *a\n", "the index.yaml of REPO cannot be used: line 2: aliases of YAML are not taken here"},
		"an unknown alias": {"entries: *a\n", "the index.yaml of REPO cannot be used: it is not YAML: unknown anchor 'a' referenced"},
		"very deep":        {"entries: " + strings.Repeat("[", 20_000), "the index.yaml of REPO cannot be used: it is not YAML: exceeded max depth of 10000"},
		"too many values":  {"entries: [" + strings.Repeat("a,", 600_000), "the index.yaml of REPO cannot be used: it has more than 1000000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			r.put("/charts/index.yaml", []byte(c.index))
			_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(r.url(), "^1")), dependency.Lock{}, false)
			fails(t, err, strings.ReplaceAll(c.message, "REPO", r.url()))
		})
	}
}

func TestHelmServerFails(t *testing.T) {
	for name, c := range map[string]struct {
		at, message string
		do          http.HandlerFunc
	}{
		"no list": {"index.yaml", "asking REPO what it has: HOST answers 404 Not Found", http.NotFound},
		"a broken list": {"index.yaml", "asking REPO what it has: HOST answers 500 Internal Server Error",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"a broken chart": {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST answers 500 Internal Server Error",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"half a chart": {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST ended the connection too early", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := withVersions(t, "1.0.0")
			r.handle("/charts/"+c.at, c.do)
			_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(r.url(), "^1")), dependency.Lock{}, false)
			fails(t, err, strings.NewReplacer("REPO", r.url(), "HOST", r.host()).Replace(c.message))
		})
	}
}

// An index is asked for once, also if it does not come: it could be slow each time.
func TestIndexIsReadOnce(t *testing.T) {
	both := func(r *repository) []string {
		return []string{requirementYAML(r.url(), "1.0.0"), requirementYAML(r.url(), "2.0.0")}
	}
	r := withVersions(t, "1.0.0", "2.0.0")
	lock(t, fetcher(t, r.host()), source(t, nil, both(r)...), dependency.Lock{})
	if d := cmp.Diff([]string{"/charts/index.yaml", "/charts/x-1.0.0.tgz", "/charts/x-2.0.0.tgz"}, r.asked()); d != "" {
		t.Error(d)
	}
	r.handle("/charts/index.yaml", http.NotFound)
	_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, both(r)...), dependency.Lock{}, false)
	if err == nil || len(strings.Split(err.Error(), "\n")) != 2 {
		t.Errorf("a line for each dependency: %v", err)
	}
	if d := cmp.Diff([]string{"/charts/index.yaml"}, r.asked()); d != "" {
		t.Error(d)
	}
}
