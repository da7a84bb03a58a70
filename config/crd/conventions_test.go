package crd_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/config/crd"
)

// exceptions are fields that break a convention, and why. A path ends the kind's own schema: what is below it counts, too.
var exceptions = []struct{ path, why string }{
	{`\.(providerRef|clusterRef)$`, "ObjectReference of Kubernetes, in objects of the operator that came before"},
	{`\.allowedNamespaces$`, "LabelSelector of Kubernetes, which checks it itself"},
	{`\.nodeTaints\[\]$`, "Taint of Kubernetes; the API server of the workload cluster checks it"},
	{`\.template\.metadata$`, "ObjectMeta of Cluster API's templates, as its contract wants it"},
	{`\.failureDomains\[\]\.attributes$`, "FailureDomain of Cluster API, as its contract wants it"},
	{`\.(labels|nodeLabels)\{\}$`, "values of labels: Kubernetes' own rules are checked at admission"},
	{`\.uid$`, "UID of Kubernetes, copied from an object by the operator"},
	{`\.spec\.interval$`, "Duration of Kubernetes; a rule reads it as one"},
	{`\.capacity$`, "ResourceList of Kubernetes; who may write it may fill the object with anything else, too"},
	{`\.conditions\[\]$`, "Condition of Kubernetes"},
}

var fieldName = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// TestConventions checks every field of every kind against the conventions of Kubernetes' APIs: a field has a
// description that begins with its name, and nothing that somebody can write is unbounded, since each object is
// stored, watched and kept in memory many times over.
func TestConventions(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, d := range all {
		for _, v := range d.Spec.Versions {
			if v.Subresources == nil || v.Subresources.Status == nil {
				if _, has := v.Schema.OpenAPIV3Schema.Properties["status"]; has {
					t.Errorf("%s %s has a status that is no subresource", d.Spec.Names.Kind, v.Name)
				}
			}
			for _, part := range []string{"spec", "status"} {
				if s, ok := v.Schema.OpenAPIV3Schema.Properties[part]; ok {
					for _, fault := range checkSchema(d.Spec.Names.Kind+"."+part, s, used) {
						t.Error(fault)
					}
				}
			}
		}
	}
	for _, e := range exceptions {
		if !used[e.path] {
			t.Errorf("no field needs the exception %s any more", e.path)
		}
	}
}

// checkSchema returns what breaks the conventions at and below a path.
func checkSchema(path string, s apiextensionsv1.JSONSchemaProps, used map[string]bool) (faults []string) {
	for _, e := range exceptions {
		if regexp.MustCompile(e.path).MatchString(path) {
			used[e.path] = true
			return nil
		}
	}
	add := func(format string, args ...any) { faults = append(faults, path+": "+fmt.Sprintf(format, args...)) }
	switch s.Type {
	case "string":
		if s.MaxLength == nil && s.Enum == nil && s.Format == "" {
			add("a string needs a maxLength, an enum or a format")
		}
	case "number":
		add("a number with a fraction is not the same on every machine; use an integer or a quantity")
	case "integer":
		if !slices.Contains([]string{"int32", "int64"}, s.Format) {
			add("an integer is int32 or int64")
		}
	case "array":
		if s.MaxItems == nil {
			add("a list needs maxItems")
		}
		if ptr.Deref(s.XListType, "") == "" {
			add("a list needs a listType, or two appliers overwrite each other")
		}
		faults = append(faults, checkSchema(path+"[]", *s.Items.Schema, used)...)
	case "object":
		if a := s.AdditionalProperties; a != nil && a.Schema != nil {
			if s.MaxProperties == nil {
				add("a map needs maxProperties")
			}
			faults = append(faults, checkSchema(path+"{}", *a.Schema, used)...)
		}
	}
	return append(faults, checkProperties(path, s, used)...)
}

// checkProperties checks the fields of an object.
func checkProperties(path string, s apiextensionsv1.JSONSchemaProps, used map[string]bool) (faults []string) {
	for name, p := range s.Properties {
		below := checkSchema(path+"."+name, p, used)
		faults = append(faults, below...)
		if !fieldName.MatchString(name) {
			faults = append(faults, path+"."+name+": names of fields are in camelCase")
		}
		if !strings.HasPrefix(p.Description, name+" ") {
			faults = append(faults, fmt.Sprintf("%s.%s: its description does not begin with its name: %.60q", path, name, p.Description))
		}
	}
	return faults
}

// The test above must be able to fail: each convention, broken once.
func TestCheckSchema(t *testing.T) {
	object := func(p apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		p.Description = "a is a field."
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": p}}
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To[int64](1)}
	schema := func(p apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaPropsOrBool {
		return &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &p}
	}
	items := func(p apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaPropsOrArray {
		return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &p}
	}
	for name, c := range map[string]struct {
		schema apiextensionsv1.JSONSchemaProps
		faults int
	}{
		"a bounded string":       {object(text), 0},
		"an unbounded string":    {object(apiextensionsv1.JSONSchemaProps{Type: "string"}), 1},
		"a float":                {object(apiextensionsv1.JSONSchemaProps{Type: "number"}), 1},
		"an integer of any size": {object(apiextensionsv1.JSONSchemaProps{Type: "integer"}), 1},
		"a list":                 {object(apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(text)}), 2},
		"a map":                  {object(apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: schema(text)}), 1},
		"another description": {apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": text},
		}, 1},
		"a name with a line": {apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a_b": {Type: "boolean", Description: "a_b is"},
		}}, 1},
	} {
		if got := checkSchema("Kind.spec", c.schema, map[string]bool{}); len(got) != c.faults {
			t.Errorf("%s: %q", name, got)
		}
	}
}
