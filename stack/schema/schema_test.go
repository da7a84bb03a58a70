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

// schemaCase is a schema, and what is wrong with it.
type schemaCase struct {
	text, want string
	stricter   bool // than Cluster API
}

var schemaCases = map[string]schemaCase{
	"sound":                  {"{type: object, required: [a], properties: {a: {type: array, items: {type: string, pattern: ^a$}, default: [a]}}}", "", false},
	"empty":                  {"{}", "openAPIV3Schema is missing", false},
	"int or string":          {"{x-kubernetes-int-or-string: true, default: 5}", "", false},
	"anything":               {"{x-kubernetes-preserve-unknown-fields: true}", "", false},
	"no type":                {"{description: x}", `the type "<nil>" is none of`, false},
	"properties of a string": {"{type: string, properties: {a: {type: string}}}", `only an object has properties, and this is "string"`, true},
	"both kinds of properties": {"{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}",
		"either properties or additionalProperties", false},
	"required without it": {"{type: object, required: [b], properties: {a: {type: string}}}", "b is required and not among the properties", true},
	"deep inside": {"{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: text}}}}}}",
		`a[].b: the type "text" is none of`, false},
	"an enumeration of nothing": {"{type: string, enum: []}", "enum must be a list of values", true},
	"a default below":           {"{type: object, properties: {a: {type: integer, default: x}}}", "a: the default does not fit: got string, want integer", false},
	"a default of the whole": {"{type: object, properties: {a: {type: integer}}, default: {a: x}}", "the default does not fit: a: got string, want integer",
		false},
	"a default that is excluded": {"{type: integer, maximum: 5, exclusiveMaximum: true, default: 5}", "the default does not fit: exclusiveMaximum: got 5, want 5",
		false},
	"a default at the maximum": {"{type: integer, maximum: 5, default: 5}", "", false},
	"an enumerated default":    {"{type: string, enum: [a, b], default: c}", "the default does not fit: value must be one of 'a', 'b'", false},
	"a reference":              {"{type: string, $ref: 'file:///etc/passwd'}", "the field $ref is not known", true},

	"alternatives":     {cidrOrName, "", false},
	"rules":            {window, "", false},
	"rules in a list":  {disks, "", false},
	"rules in a map":   {labels, "", false},
	"reasons of rules": {reasons, "", false},
	"an alternative with a type": {"{type: string, anyOf: [{type: string}]}", `anyOf[0].type: the schema is not structural: must be empty to be structural`,
		false},
	"a rule that does not parse": {"{type: integer, x-kubernetes-validations: [{rule: 'self >'}]}", `the rule "self >" does not parse: `, false},
	"a rule that does not compile": {"{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self.b}]}}}",
		`a: the rule "self.b" does not compile: 1:5: type 'int' does not support field selection`, false},
	"a rule that is no truth": {"{type: integer, x-kubernetes-validations: [{rule: self + 1}]}",
		`the rule "self + 1" does not compile: cel expression must evaluate to a bool`, false},
	"a rule that is empty":              {"{type: integer, x-kubernetes-validations: [{rule: ' '}]}", "a rule is empty", false},
	"a rule that costs too much":        {"{type: object, properties: {a: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'self.a.all(b, self.a.all(c, b != c))'}]}", `may cost more than 100 times what is allowed; simplify, or set maxItems`, false},
	"rules that cost too much together": {"{type: array, items: {type: array, items: {type: string, x-kubernetes-validations: [{rule: \"self.contains('a')\"}, {rule: \"self.contains('b')\"}]}}}", `times what is allowed`, false},
	"a rule of a list": {"{type: array, maxItems: 3, items: {type: integer}, x-kubernetes-validations: [{rule: self.size() > 1}]}",
		"Cluster API takes no rules on a variable that is itself a list", false},
	"a message that does not compile": {"{type: integer, x-kubernetes-validations: [{rule: self > 0, messageExpression: self}]}",
		`the messageExpression of rule "self > 0" does not compile: messageExpression must evaluate to a string`, false},
	"a message of two lines": {"{type: integer, x-kubernetes-validations: [{rule: self > 0, message: \"a\\nb\"}]}",
		`the message of rule "self > 0" has more than one line`, false},
	"a message of nothing": {"{type: integer, x-kubernetes-validations: [{rule: self > 0, message: ' '}]}", `the message of rule "self > 0" is empty`,
		false},
	"a rule of two lines": {"{type: integer, x-kubernetes-validations: [{rule: \"self\\n> 0\"}]}",
		`has more than one line, so it must have a message`, false},
	"a long message": {"{type: integer, x-kubernetes-validations: [{rule: self > 0, message: " + strings.Repeat("a", 2049) + "}]}",
		`is longer than 2048 characters`, false},
	"a reason of nobody": {"{type: integer, x-kubernetes-validations: [{rule: self > 0, reason: Mood}]}",
		`the reason "Mood" of rule "self > 0" is not known`, false},
	"a path to nothing": {"{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.a), fieldPath: .b}]}",
		`the fieldPath ".b" of rule "has(self.a)" is not that of a field`, false},
	"oldSelf in a list": {"{type: array, maxItems: 3, items: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}",
		`[]: the rule "self >= oldSelf" uses oldSelf in a list`, false},
	"a default that breaks a rule": {"{type: object, properties: {a: {type: integer, default: 7, x-kubernetes-validations: [{rule: self % 2 == 0}]}}}",
		"a: the default does not fit: it must keep to the rule self % 2 == 0", false},
	"a default with unknown fields": {"{type: object, properties: {a: {type: string}}, default: {b: x}}",
		"the default does not fit: must not have unknown fields", false},
	"a default in a list": {"{type: array, items: {type: object, properties: {a: {type: string, maxLength: 1, default: ab}}}}",
		"[].a: the default does not fit: maxLength: got 2, want 1", false},
	"a default that is not one":    {"{type: object, properties: {a: {type: string, default: x, not: {enum: [x]}}}}", "a: the default does not fit: ", false},
	"an example that does not fit": {"{type: integer, example: x}", "the example does not fit: got string, want integer", false},
	"an example that breaks a rule": {"{type: integer, example: 7, x-kubernetes-validations: [{rule: self % 2 == 0, message: it must be even}]}",
		"the example does not fit: it must be even", false},
	"a choice that does not fit": {"{type: object, properties: {a: {type: string, maxLength: 1, enum: [a, bc]}}}",
		"a: bc in enum does not fit: maxLength: got 2, want 1", false},
}

func TestCheck(t *testing.T) {
	for name, tc := range schemaCases {
		t.Run(name, func(t *testing.T) {
			wrong, _ := schema.Check(t.Context(), parse(t, tc.text))
			if got := strings.Join(wrong, "; "); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckDepth(t *testing.T) {
	text := strings.Repeat("{type: array, items: ", 40) + "{type: string}" + strings.Repeat("}", 40)
	if wrong, _ := schema.Check(t.Context(), parse(t, text)); len(wrong) != 1 || !strings.Contains(wrong[0], "more than 30 levels deep") {
		t.Error(wrong)
	}
}

func TestJSONSchema(t *testing.T) {
	got := schema.JSONSchema(parse(t,
		"{type: object, example: {a: 1}, properties: {a: {type: integer, minimum: 1, exclusiveMinimum: true}, b: {x-kubernetes-int-or-string: true, x-metadata: {}}}}"))
	want := map[string]any{"type": "object", "examples": []any{map[string]any{"a": int64(1)}}, "properties": map[string]any{
		"a": map[string]any{"type": "integer", "exclusiveMinimum": int64(1)},
		"b": map[string]any{"type": []any{"integer", "string"}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
