// Package stacks_test checks the stacks we ship: they lint clean, and reviews show when what they
// render to changes.
package stacks_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/params"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// sources reads the stacks below this directory: provider, then name.
func sources(t *testing.T) map[string]archive.Tree {
	t.Helper()
	dirs, err := filepath.Glob("*/*/stack.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no stacks", err)
	}
	out := map[string]archive.Tree{}
	for _, file := range dirs {
		tree, err := archive.ReadDir(filepath.Dir(file), archive.DefaultLimits, nil)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Dir(file)] = tree
	}
	return out
}

func TestStacksAreClean(t *testing.T) {
	for dir, files := range sources(t) {
		found, err := lint.Run(t.Context(), files, lint.Options{})
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v\n%v", dir, err, found)
		}
	}
}

// What each stack renders to, for each of its versions of Kubernetes, as version v1 and with all
// parameters at their defaults, is in testdata. Renew it with -update, and read the difference.
func TestGolden(t *testing.T) {
	for dir, files := range sources(t) {
		s, err := stack.ParseSource(files)
		if err != nil {
			t.Fatal(dir, err)
		}
		for _, k := range s.Versions {
			one, err := s.ForKubernetes(k)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(one.String(), func(t *testing.T) { golden(t, one) })
		}
	}
}

func golden(t *testing.T, s *stack.Source) {
	v, err := s.CustomVersions(version.Version{Major: 1}, version.Version{}, version.Version{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Build(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	rd := new(render.Renderer)
	class, found, err := r.RenderClass(t.Context(), rd, "default")
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	data, err := r.SampleClusterData(class)
	if err != nil {
		t.Fatal(err)
	}
	stages, found, err := r.RenderAddons(t.Context(), rd, stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	var b bytes.Buffer
	write(t, &b, "class", class.Objects)
	for _, st := range stages {
		write(t, &b, st.RuntimeHook+" "+st.Stage.Name, st.Objects)
	}
	compare(t, s.String()+".yaml", b.Bytes())
	compare(t, s.String()+".md", []byte(params.Page(r, class, stages)))
}

func write(t *testing.T, b *bytes.Buffer, title string, objects []render.Object) {
	for _, o := range objects {
		text, err := yaml.Marshal(o.Value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "---\n# %s: %s\n%s", title, o.Path, text)
	}
}

func compare(t *testing.T, name string, got []byte) {
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs; if that is right, run go test ./stacks -update: %s", file, d)
	}
}
