package instant

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// The stack has no errors; its warnings are accepted on purpose.
func TestStackIsSound(t *testing.T) {
	files, err := New().SourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	found, err := lint.Run(t.Context(), files, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wise := map[string]bool{"class-kind": true, "chart-unused": true} // findings that are accepted: kinds of its own, and no add-ons
	for _, f := range found {
		if f.Severity == finding.Error || !wise[f.Rule] {
			t.Errorf("%s", f)
		}
	}
}

func TestReleases(t *testing.T) {
	all, err := New().Releases()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name.Tag())
		c, bad, err := r.RenderClass(t.Context(), &render.Renderer{}, "x")
		if err != nil || bad.Err() != nil {
			t.Fatal(err, bad)
		}
		var variables []string
		for _, v := range c.Variables {
			variables = append(variables, v.Name)
		}
		if diff := cmp.Diff([]string{"flavor", "note"}, variables); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"default-worker"}, c.MachineDeploymentClasses); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"instant-bare-1-36-v1", "instant-bare-1-37-v1"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWriteTwice(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := New().WriteReleases(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestObjects(t *testing.T) {
	all, err := New().ClusterStacks("stacks", "dir")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	o := all[1].(*csv1.ClusterStack)
	if o.Namespace != "stacks" || o.Name != "instant-bare-1-37" || o.Spec.Provider != Name || o.Spec.Name != StackName || o.Spec.KubernetesVersion != "1.37" ||
		o.Spec.Source.Directory != "dir" || o.Spec.AllowedNamespaces == nil {
		t.Errorf("%+v", o)
	}
}

// Every kind that the stack or Cluster API needs has a definition and the rights to it.
func TestKindsAndRoles(t *testing.T) {
	p := New()
	if n := len(p.CRDs()); n != 8 {
		t.Errorf("%d kinds", n)
	}
	for _, crd := range p.CRDs() {
		if crd.Name != crd.Spec.Names.Plural+".instant.polder.dev" || crd.Labels["cluster.x-k8s.io/v1beta2"] != "v1alpha1" {
			t.Errorf("%s: %v", crd.Name, crd.Labels)
		}
	}
	for i, label := range []string{"cluster.x-k8s.io/aggregate-to-manager", "polder.dev/aggregate-to-operator"} {
		if o := p.Roles()[i]; o.GetLabels()[label] != "true" {
			t.Errorf("%s: %v", o.GetName(), o.GetLabels())
		}
	}
}
