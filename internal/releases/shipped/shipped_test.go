package shipped

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stacks"
)

// A version never changes its content: clusters of one plane must be those of another.
func TestVersionsAreOfTheirContent(t *testing.T) {
	entries, err := readVersions(stacks.Files)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		s, err := readSource(stacks.Files, e)
		if err != nil {
			t.Fatal(err)
		}
		if got := stack.HashSource(s.Files).ClusterStack; got != e.Hash {
			t.Errorf("stack %s has changed: raise its version in stacks/versions.yaml, unless %s was never published, and write hash: %s", e.Stack, e.Version, got)
		}
	}
}

func TestBuildReleases(t *testing.T) {
	all, err := BuildReleases(stacks.Files)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name.Tag())
	}
	if d := cmp.Diff([]string{"local-scs-1-35-v4", "local-scs-1-36-v4", "local-scs-1-37-v4"}, names); d != "" {
		t.Error(d)
	}
	dir := t.TempDir()
	for range 2 { // the second time, all is there
		if err := Write(t.Context(), dir, all); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			t.Error(err)
		}
	}
	var stacks []string
	for _, o := range Objects(all)[1:] {
		s, ok := o.(*csv1.ClusterStack)
		if !ok || s.Spec.AllowedNamespaces == nil || s.Spec.Source.Directory != Directory {
			t.Errorf("%+v", o)
			continue
		}
		stacks = append(stacks, s.Name+" "+s.Spec.KubernetesVersion)
	}
	if d := cmp.Diff([]string{"local-scs-1-35 1.35", "local-scs-1-36 1.36", "local-scs-1-37 1.37"}, stacks); d != "" {
		t.Error(d)
	}
}

// What a plane has written before stays: clusters may be of it.
func TestWriteLeavesWhatIsThere(t *testing.T) {
	all, err := BuildReleases(stacks.Files)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Write(t.Context(), dir, all[:1]); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, all[0].Name.Tag(), "metadata.yaml")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), dir, all); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || !os.SameFile(before, after) {
		t.Error("it was written again", err)
	}
}
