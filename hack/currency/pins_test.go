package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const modFile = `module example.com/main

go 1.26.0

tool example.com/tools/lint/cmd/lint

require example.com/a v1.0.0

require (
	example.com/b/v2 v2.1.0
	example.com/indirect v1.0.0 // indirect
	example.com/tools/lint v1.5.0 // indirect
	example.com/tools v1.0.0 // indirect
	example.com/tools/linter v1.0.0 // indirect
	example.com/staging v0.0.0
	example.com/fork v1.0.0
	example.com/near v1.0.0
	example.com/other v1.0.0
)

replace (
	example.com/staging => example.com/staging v0.36.3
	example.com/fork v1.0.0 => example.com/fork/v3 v3.0.1
	example.com/near => ../near
	example.com/other v1.1.0 => example.com/other v1.2.0
)
`

func TestReadPins(t *testing.T) {
	root := fstest.MapFS{"sub/go.mod": {Data: []byte(modFile)}, "bad/go.mod": {Data: []byte("require\n")}}
	got, err := readPins(root, "sub/go.mod")
	want := []pin{
		{Path: "example.com/a", Version: "v1.0.0"},
		{Path: "example.com/b/v2", Version: "v2.1.0"},
		{Path: "example.com/tools/lint", Version: "v1.5.0"},
		{Path: "example.com/staging", Version: "v0.36.3", Replaced: true},
		{Path: "example.com/fork/v3", Version: "v3.0.1", Replaced: true},
		{Path: "example.com/near", Directory: "../near"},
		{Path: "example.com/other", Version: "v1.0.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, name := range []string{"bad/go.mod", "absent/go.mod"} {
		if _, err := readPins(root, name); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

func TestReadOffers(t *testing.T) {
	stack := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := readOffers(fstest.MapFS{
		"stacks/local/scs/stack.yaml":      stack("provider: local\nkubernetesVersions: [v1.35.7, 1.36.3]\n"),
		"stacks/openstack/one/stack.yaml":  stack("kubernetesVersion: v1.36.3\n"),
		"stacks/local/scs/deep/stack.yaml": stack("kubernetesVersion: v1.0.0\n"),
	})
	want := []offer{{"stacks/local/scs", "v1.35.7"}, {"stacks/local/scs", "v1.36.3"}, {"stacks/openstack/one", "v1.36.3"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for name, root := range map[string]fstest.MapFS{
		"no stacks":   {},
		"no versions": {"stacks/a/b/stack.yaml": stack("provider: local\n")},
		"no YAML":     {"stacks/a/b/stack.yaml": stack("a: [\n")},
	} {
		if got, err := readOffers(root); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}
