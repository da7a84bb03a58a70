package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	stacks "github.com/polder-kaas/polder/stack/registry"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestReferences(t *testing.T) {
	for s, want := range map[string]struct {
		stacks.Reference
		text string // if it is written otherwise than it was read
	}{
		"oci://registry.example/kaas/cluster-stacks": {stacks.Reference{Host: "registry.example", Repository: "kaas/cluster-stacks"}, ""},
		"oci://localhost:5000/x":                     {stacks.Reference{Host: "localhost:5000", Repository: "x"}, ""},
		"oci://[::1]:5000/x":                         {stacks.Reference{Host: "[::1]:5000", Repository: "x"}, ""},
		"oci://REGISTRY.example/x":                   {stacks.Reference{Host: "registry.example", Repository: "x"}, "oci://registry.example/x"},
		"oci://h/x:" + v3:                            {stacks.Reference{Host: "h", Repository: "x", Tag: v3}, ""},
		"oci://h/x@" + someDigest:                    {stacks.Reference{Host: "h", Repository: "x", Digest: someDigest}, ""},
		"oci://h:1/x:" + v3 + "@" + someDigest:       {stacks.Reference{Host: "h:1", Repository: "x", Tag: v3, Digest: someDigest}, ""},
		"oci://h/x:docker-ferrol-1-27-v0-sha.abc": {stacks.Reference{Host: "h", Repository: "x", Tag: "docker-ferrol-1-27-v0-sha-abc"},
			"oci://h/x:docker-ferrol-1-27-v0-sha-abc"},
		"releases":                     {stacks.Reference{Directory: "releases"}, ""},
		"releases.d":                   {stacks.Reference{Directory: "releases.d"}, ""},
		"./registry.example/x":         {stacks.Reference{Directory: "registry.example/x"}, "registry.example/x"},
		"../some/where/":               {stacks.Reference{Directory: "../some/where"}, "../some/where"},
		"/srv/releases/" + v3:          {stacks.Reference{Directory: "/srv/releases", Tag: v3}, ""},
		v3:                             {stacks.Reference{Directory: ".", Tag: v3}, ""},
		"dir/" + v3 + "@" + someDigest: {stacks.Reference{Directory: "dir", Tag: v3, Digest: someDigest}, ""},
		"dir@" + someDigest:            {stacks.Reference{Directory: "dir", Digest: someDigest}, ""},
	} {
		got, err := stacks.ParseReference(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if d := cmp.Diff(want.Reference, got); d != "" {
			t.Errorf("%s: %s", s, d)
		}
		if want.text == "" {
			want.text = s
		}
		if got.String() != want.text {
			t.Errorf("%s is written as %s", s, got)
		}
	}
}

func TestBadReferences(t *testing.T) {
	for s, want := range map[string]string{
		"":                                   "the reference is empty; write oci://host/repository, or the path of a directory",
		strings.Repeat("a", 2000):            "the reference has 2000 characters",
		"https://h/x":                        `references that begin with "https://" are not known; write oci://host/repository`,
		"docker://user:secret@h/x":           `references that begin with "docker://" are not known`,
		"registry.example/kaas/x":            `"registry.example/kaas/x" looks like a registry; write oci://registry.example/kaas/x, or ./registry.example/kaas/x if it is a directory`,
		"localhost:5000/x":                   "looks like a registry; write oci://localhost:5000/x",
		"localhost/x":                        "looks like a registry",
		"user:secret@h/x":                    "a reference has no user and no password in it",
		"oci://user:secret@h/x":              "a reference has no user and no password in it; give them apart",
		"oci://h":                            `"oci://h" names no repository`,
		"oci://h/":                           "names no repository",
		"oci:///x":                           `"" is no host`,
		"oci://h:port/x":                     `"h:port" is no host`,
		"oci://h?q/x":                        "is no host",
		"oci://h%41/x":                       "is no host",
		"oci://h/X":                          `"X" is no name of a repository`,
		"oci://h/../x":                       "is no name of a repository",
		"oci://h/a//b":                       "is no name of a repository",
		"oci://h/x?q":                        "is no name of a repository",
		"oci://h/x:latest":                   `tag: release "latest" is not of the form provider-name-1-36-v1`,
		"oci://h/x:":                         `tag: release "" is not of the form`,
		"oci://h/x:dосker-ferrol-1-27-v3":    "is not of the form", // о and с are Cyrillic
		"oci://h/x@sha256:abc":               `"sha256:abc" is no digest`,
		"oci://h/x@sha512:" + someDigest[7:]: "is no digest",
		"oci://h/@" + someDigest:             "the reference is only a digest",
		"@" + someDigest:                     "the reference is only a digest",
	} {
		if r, err := stacks.ParseReference(s); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60s: %+v, %v, want %s", s, r, err, want)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"oci://h:1/x/y:" + v3 + "@" + someDigest, "dir/" + v3, "oci://user:pw@h/x", "./a", "oci://[::1]/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := stacks.ParseReference(s)
		if err != nil || r.Directory != "" { // a relative path may need ./ before it
			return
		}
		if again, err := stacks.ParseReference(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v, then %+v, %v", s, r, again, err)
		}
	})
}
