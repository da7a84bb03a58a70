package main

import (
	"bytes"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/config/crd"
)

func TestWriteField(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{
		Type: "string", Description: "one\n line", MaxLength: ptr.To[int64](3), Default: &apiextensionsv1.JSON{Raw: []byte(`"a|b"`)},
	}
	s := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"list"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text},
		}}},
		"map": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"n": {Type: "integer", Minimum: ptr.To(1.5)}},
		}}},
	}}
	var out bytes.Buffer
	writeField(&out, "spec", &s, true)
	want := "| **`spec`** | object |  |\n" +
		"| **`spec.list`** | list of object |  |\n" +
		"| **`spec.list[].name`** | string | one line Default `\"a\\|b\"`. At most 3 characters. |\n" +
		"| `spec.map` | map to object |  |\n" +
		"| `spec.map.*.n` | integer | At least 1.5. |\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// Every kind is on the page, and what is said of a field there is all that its definition says.
func TestWritePage(t *testing.T) {
	var out bytes.Buffer
	if err := writePage(&out); err != nil {
		t.Fatal(err)
	}
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if n := strings.Count(out.String(), "\n## "+c.Spec.Names.Kind+"\n"); n != len(c.Spec.Versions) {
			t.Errorf("%s is there %d times", c.Spec.Names.Kind, n)
		}
	}
	if strings.Contains(out.String(), "status.conditions[].reason") {
		t.Error("the fields of conditions are listed")
	}
}
