package dependency_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
)

func TestListRequirements(t *testing.T) {
	s := source(t, nil, `{name: a, version: ^1, repository: "https://a.example", alias: b, condition: b.enabled, tags: [t], import-values: [v]}`, "{name: c}")
	got, err := dependency.ListRequirements(s.Files, "cluster-addon/cni")
	want := []dependency.Requirement{{Name: "a", Version: "^1", Repository: "https://a.example", Line: 5}, {Name: "c", Line: 6}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if got, err := dependency.ListRequirements(s.Files, "nowhere"); got != nil || err != nil {
		t.Error(got, err)
	}
	for text, want := range map[string]string{
		"{name: a, version: 1.10}": chartYAML + ":4: dependencies.version must be a string, not number",
		"a":                        chartYAML + ":4: dependencies must be an object, not string",
		"{name: a, name: b}":       chartYAML + `:5: "name" is here a second time, after line 5`,
	} {
		if _, err := dependency.ListRequirements(source(t, nil, text).Files, "cluster-addon/cni"); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What is wrong with a requirement is said in one sentence, and no repository is asked.
func TestListRequirementsRefused(t *testing.T) {
	for name, c := range map[string]struct{ need, name, message string }{
		"a name of helm": {"{name: x, repository: '@stable', version: ^1}", "x",
			"@stable is a name that only helm on one computer knows; write the address of the repository, https://… or oci://…"},
		"the other spelling": {"{name: x, repository: 'alias:stable', version: ^1}", "x",
			"alias:stable is a name that only helm on one computer knows; write the address of the repository, https://… or oci://…"},
		"no repository": {"{name: x, version: ^1}", "x",
			"it has no repository, and is not in cluster-addon/cni/charts; add the chart there, or name its repository"},
		"another scheme": {"{name: x, repository: 'git+https://x.example', version: ^1}", "x",
			`the repository "git+https://x.example" is neither https://…, oci://… nor file://…`},
		"no scheme": {"{name: x, repository: x.example, version: ^1}", "x", `the repository "x.example" is neither https://…, oci://… nor file://…`},
		"no host": {"{name: x, repository: 'https:///charts', version: ^1}", "x",
			`the repository "https:///charts" is neither https://…, oci://… nor file://…`},
		"one slash": {"{name: x, repository: 'file:../x', version: ^1}", "x", `the repository "file:../x" is neither https://…, oci://… nor file://…`},
		"a password": {"{name: x, repository: 'https://u:secret@x.example', version: ^1}", "x",
			"the repository at x.example has a user, a password or a query in its address, which everybody who gets the stack would see; write https://host/path"},
		"a token": {"{name: x, repository: 'https://x.example/?token=secret', version: ^1}", "x",
			"the repository at x.example has a user, a password or a query in its address, which everybody who gets the stack would see; write https://host/path"},
		"a password, no address": {"{name: x, repository: 'ftp://u:secret@x.example', version: ^1}", "x",
			`the repository "ftp://x.example" is neither https://…, oci://… nor file://…`},
		"a path as name": {"{name: ../x, repository: 'https://x.example', version: ^1}", `"../x"`,
			"this is no name of a chart; use letters, digits, dots, dashes and underscores"},
		"dots as name": {"{name: .., repository: 'https://x.example', version: ^1}", `".."`,
			"this is no name of a chart; use letters, digits, dots, dashes and underscores"},
		"look-alike letters": {"{name: х, repository: 'https://x.example', version: ^1}", `"х"`,
			"this is no name of a chart; use letters, digits, dots, dashes and underscores"},
		"lines in the name": {`{name: "x\ny", repository: 'https://x.example', version: ^1}`, `"x\ny"`,
			"this is no name of a chart; use letters, digits, dots, dashes and underscores"},
		"nothing": {"~", `""`, "this is no name of a chart; use letters, digits, dots, dashes and underscores"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, nil, c.need)
			want := chartYAML + ":5: dependency " + c.name + ": " + c.message
			if _, err := fetcher(t).Lock(t.Context(), s, dependency.Lock{}, false); err == nil || err.Error() != want {
				t.Errorf("lock: %v\nwant %s", err, want)
			}
			if _, err := fetcher(t).Vendor(t.Context(), s); err == nil || err.Error() != want {
				t.Errorf("vendor: %v\nwant %s", err, want)
			}
		})
	}
}

func TestIsVendored(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		version string
		want    bool
	}{
		"nothing":                      {nil, "^1", false},
		"an archive":                   {map[string]string{"x-1.2.3.tgz": ""}, "^1", true},
		"an archive, for any":          {map[string]string{"x-1.2.3-rc.1.tgz": ""}, "", true},
		"with a v":                     {map[string]string{"x-v1.2.3.tgz": ""}, "1.2.3", true},
		"with a plus":                  {map[string]string{"x-1.2.3+a.tgz": ""}, "1.2.3+a", true},
		"a pre-release":                {map[string]string{"x-1.2.3-rc.1.tgz": ""}, "^1", true},
		"another version":              {map[string]string{"x-1.2.3.tgz": ""}, "^2", false},
		"a longer name":                {map[string]string{"x-operator-1.2.3.tgz": ""}, "^1", false},
		"another file":                 {map[string]string{"x-1.2.3.zip": ""}, "^1", false},
		"a directory":                  {map[string]string{"x/Chart.yaml": "name: x\nversion: 1.2.3\n"}, "^1", true},
		"a directory of another name":  {map[string]string{"y/Chart.yaml": "name: x\nversion: 1.2.3\n"}, "^1", true},
		"a directory of another chart": {map[string]string{"x/Chart.yaml": "name: y\nversion: 1.2.3\n"}, "^1", false},
		"a directory, another version": {map[string]string{"x/Chart.yaml": "name: x\nversion: 1.2.3\n"}, "^2", false},
		"a directory that is broken":   {map[string]string{"x/Chart.yaml": "{"}, "^1", true},
		"a directory without a chart":  {map[string]string{"x/README.md": ""}, "^1", false},
		"deeper":                       {map[string]string{"y/charts/x-1.2.3.tgz": ""}, "^1", false},
		"a range nobody understands":   {map[string]string{"x-1.2.3.tgz": ""}, "<< .Version >>", true},
	} {
		files := archive.Tree{}
		for file, text := range c.files {
			files["a/charts/"+file] = []byte(text)
		}
		if got := dependency.IsVendored(files, "a", dependency.Requirement{Name: "x", Version: c.version}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What lies in charts needs no lock and no repository, and does not keep others from being locked. An
// old version does: a build would take both.
func TestVendoredByHand(t *testing.T) {
	archive := map[string]string{"cluster-addon/cni/charts/x-1.0.0.tgz": string(packed(t, "x", "1.0.0"))}
	s := source(t, archive, "{name: x, version: ^1}")
	if l := lock(t, fetcher(t), s, dependency.Lock{}); len(l.Charts) != 0 {
		t.Error(l)
	}
	if v := vendor(t, fetcher(t), s); len(v) != 0 {
		t.Error(v)
	}
	r := withVersions(t, "1.0.0", "2.0.0")
	old := source(t, archive, requirementYAML(r.url(), "^2"))
	_, err := fetcher(t, r.host()).Lock(t.Context(), old, dependency.Lock{}, false)
	fails(t, err, "cluster-addon/cni/charts/x-1.0.0.tgz is version 1.0.0, and the chart wants ^2; remove it, and run polder stack lock")
	both := source(t, archive, requirementYAML(r.url(), "^1"), strings.Replace(requirementYAML(r.url(), "^2"), "{", "{alias: y, ", 1))
	if d := cmp.Diff([]string{"x 2.0.0"}, versions(lock(t, fetcher(t, r.host()), both, dependency.Lock{}))); d != "" {
		t.Error(d)
	}
}
