package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/schema"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	d, err := document.ParseOne("schema.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := d.Value().(map[string]any)
	return m
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"sound":                      {"{type: object, required: [a], properties: {a: {type: array, items: {type: string, pattern: ^a$}, default: [a]}}}", ""},
		"empty":                      {"{}", "openAPIV3Schema is missing"},
		"int or string":              {"{x-kubernetes-int-or-string: true, default: 5}", ""},
		"anything":                   {"{x-kubernetes-preserve-unknown-fields: true}", ""},
		"no type":                    {"{description: x}", `the type "<nil>" is none of`},
		"properties of a string":     {"{type: string, properties: {a: {type: string}}}", `only an object has properties, and this is "string"`},
		"both kinds of properties":   {"{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}", "either properties or additionalProperties"},
		"required without it":        {"{type: object, required: [b], properties: {a: {type: string}}}", "b is required and not among the properties"},
		"deep inside":                {"{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: text}}}}}}", `a[].b: the type "text" is none of`},
		"an enumeration of nothing":  {"{type: string, enum: []}", "enum must be a list of values"},
		"a default below":            {"{type: object, properties: {a: {type: integer, default: x}}}", "a: the default does not fit: got string, want integer"},
		"a default of the whole":     {"{type: object, properties: {a: {type: integer}}, default: {a: x}}", "the default does not fit: a: got string, want integer"},
		"a default that is excluded": {"{type: integer, maximum: 5, exclusiveMaximum: true, default: 5}", "the default does not fit: exclusiveMaximum: got 5, want 5"},
		"a default at the maximum":   {"{type: integer, maximum: 5, default: 5}", ""},
		"an enumerated default":      {"{type: string, enum: [a, b], default: c}", "the default does not fit: value must be one of 'a', 'b'"},
		"a reference":                {"{type: string, $ref: 'file:///etc/passwd'}", "the field $ref is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, _ := schema.Check(parse(t, tc.text))
			if got := strings.Join(wrong, "; "); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckDepth(t *testing.T) {
	text := strings.Repeat("{type: array, items: ", 40) + "{type: string}" + strings.Repeat("}", 40)
	if wrong, _ := schema.Check(parse(t, text)); len(wrong) != 1 || !strings.Contains(wrong[0], "more than 30 levels deep") {
		t.Error(wrong)
	}
}

func TestJSONSchema(t *testing.T) {
	got := schema.JSONSchema(parse(t, "{type: object, example: {a: 1}, properties: {a: {type: integer, minimum: 1, exclusiveMinimum: true}, b: {x-kubernetes-int-or-string: true, x-metadata: {}}}}"))
	want := map[string]any{"type": "object", "examples": []any{map[string]any{"a": int64(1)}}, "properties": map[string]any{
		"a": map[string]any{"type": "integer", "exclusiveMinimum": int64(1)},
		"b": map[string]any{"type": []any{"integer", "string"}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
