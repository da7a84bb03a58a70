package class_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/schema"
)

const recent = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: a}
spec:
  infrastructure: {templateRef: {apiVersion: i/v1, kind: InfraTemplate, name: i}}
  controlPlane:
    templateRef: {apiVersion: c/v1, kind: ControlTemplate, name: c}
    machineInfrastructure: {templateRef: {apiVersion: i/v1, kind: MachineTemplate, name: m}}
  workers:
    machineDeployments:
      - class: default
        bootstrap: {templateRef: {apiVersion: b/v1, kind: BootTemplate, name: b}}
        infrastructure: {templateRef: {apiVersion: i/v1, kind: MachineTemplate, name: w}}
  variables:
    - {name: size, required: true, schema: {openAPIV3Schema: {type: string, default: s}}}
    - {name: none, schema: {openAPIV3Schema: {type: string}}}
`

// The older version of the types has its references one level deeper, and another name for them.
var older = strings.NewReplacer("v1beta2", "v1beta1", "templateRef", "ref",
	"        bootstrap:", "        template:\n         bootstrap:", "        infrastructure:", "         infrastructure:").Replace(recent)

func objects(t testing.TB, text string) []render.Object {
	t.Helper()
	set := render.ParseObjects([]render.File{{Path: "class.yaml", Text: text}})
	if len(set.Errors) > 0 {
		t.Fatal(set.Errors[0])
	}
	return set.Objects
}

func TestFind(t *testing.T) {
	want := []class.Ref{
		{Field: "infrastructure", APIVersion: "i/v1", Kind: "InfraTemplate", Name: "i"},
		{Field: "controlPlane", APIVersion: "c/v1", Kind: "ControlTemplate", Name: "c"},
		{Field: "controlPlane.machineInfrastructure", APIVersion: "i/v1", Kind: "MachineTemplate", Name: "m"},
		{Field: "workers.machineDeployments[0].bootstrap", APIVersion: "b/v1", Kind: "BootTemplate", Name: "b"},
		{Field: "workers.machineDeployments[0].infrastructure", APIVersion: "i/v1", Kind: "MachineTemplate", Name: "w"},
	}
	for version, text := range map[string]string{class.V1Beta2: recent, class.V1Beta1: older} {
		c, err := class.Find(objects(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, c.Refs); d != "" || c.Version != version {
			t.Error(c.Version, d)
		}
		if d := cmp.Diff([]any{map[string]any{"name": "size", "value": "s"}}, c.Defaults()); d != "" || !c.Variables[0].Required {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"default"}, c.MachineDeploymentClasses); d != "" {
			t.Error(d)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n":                  "there is no ClusterClass",
		recent + "---\n" + strings.Replace(recent, "name: a", "name: b", 1): "there are two ClusterClasses, a and b; a release has one",
		strings.Replace(recent, "v1beta2", "v1alpha4",
			1): "has the apiVersion cluster.x-k8s.io/v1alpha4; cluster.x-k8s.io/v1beta1 and v1beta2 are known",
		strings.Replace(recent, "  variables:\n", "  variables: 5\n  x:\n", 1): "its spec is not that of a class",
	} {
		if _, err := class.Find(objects(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add(recent)
	f.Add(older)
	f.Add("apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: a}\nspec: {variables: [{name: a, schema: {openAPIV3Schema: {type: array, items: {enum: [1], pattern: '('}}}}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		set := render.ParseObjects([]render.File{{Path: "x.yaml", Text: text}})
		c, err := class.Find(set.Objects)
		if err != nil {
			return
		}
		for _, v := range c.Variables {
			schema.Check(t.Context(), v.Schema.OpenAPIV3Schema)
		}
	})
}
