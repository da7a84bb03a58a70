package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/stack/schema"
)

// validate returns what is wrong with a value of parameter p, each error as one text.
func validate(t testing.TB, v *schema.Validator, value, old string) (out []string) {
	t.Helper()
	for _, e := range v.Validate(t.Context(), field.NewPath("p"), []byte(value), []byte(old)) {
		out = append(out, e.Error())
	}
	return out
}

// valueCase is a value, the one before it, and the errors that are wanted.
type valueCase struct {
	schema, value, old string
	want               []string
}

const (
	cidrOrName = `{type: object, properties: {cidr: {type: string}, name: {type: string}},
		oneOf: [{required: [cidr]}, {required: [name]}]}`
	portOrPorts = `{type: object, properties: {port: {type: integer}, ports: {type: array, items: {type: integer}}},
		anyOf: [{required: [port]}, {required: [ports]}]}`
	growing = `{type: object, properties: {size: {type: integer, default: 3, x-kubernetes-validations: [
		{rule: self >= oldSelf, message: it must not shrink}]}}}`
	window = `{type: object, properties: {start: {type: integer, default: 4}, end: {type: integer}},
		x-kubernetes-validations: [{rule: self.start < self.end, message: the start must be before the end}]}`
	disks = `{type: array, maxItems: 20, items: {type: object, required: [name], properties: {
		name: {type: string, maxLength: 20}, size: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0}]}}}}`
	labels = `{type: object, maxProperties: 20, additionalProperties: {type: string, maxLength: 20, not: {enum: [root, admin]},
		x-kubernetes-validations: [{rule: "!self.startsWith('x-')", messageExpression: "self + ' is reserved'"}]}}`
	reasons = `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [
		{rule: "has(self.a)", message: name one, reason: FieldValueRequired, fieldPath: .a},
		{rule: "!has(self.b)", message: b is of yesterday, reason: FieldValueForbidden, fieldPath: .b}]}`
)

var valueCases = map[string]valueCase{
	"one of two":  {cidrOrName, `{"cidr":"a"}`, "", nil},
	"none of two": {cidrOrName, `{}`, "", []string{"p: Invalid value: {}: it must be exactly one of these, and is none: with cidr; with name"}},
	"both of two": {cidrOrName, `{"cidr":"a","name":"b"}`, "", []string{
		`p: Invalid value: {"cidr":"a","name":"b"}: it must be exactly one of these, and is 2 of them: with cidr; with name`,
	}},
	"any of two":        {portOrPorts, `{"port":1,"ports":[2]}`, "", nil},
	"not any of two":    {portOrPorts, `{}`, "", []string{"p: Invalid value: {}: it must be at least one of these: with port; with ports"}},
	"a type before all": {portOrPorts, `{"port":"x"}`, "", []string{`p.port: Invalid value: "x": write a whole number`}},
	"described": {"{type: string, anyOf: [{pattern: ^a, description: a name of the north}, {enum: [x, y]}]}", `"q"`, "", []string{
		`p: Invalid value: "q": it must be at least one of these: a name of the north; one of x, y`,
	}},
	"limits": {"{type: integer, oneOf: [{minimum: 5}, {maximum: 2, minimum: 1}]}", `3`, "", []string{
		`p: Invalid value: 3: it must be exactly one of these, and is none: of at least 5; {"maximum":2,"minimum":1}`,
	}},
	"many alternatives": {"{type: integer, anyOf: [{enum: [1]}, {enum: [2]}, {enum: [3]}, {enum: [4]}, {enum: [5]}, {enum: [6]}, {enum: [7]}]}", `8`, "",
		[]string{"p: Invalid value: 8: it must be at least one of these: 1; 2; 3; 4; 5; or 2 more"}},
	"not that":       {"{type: string, not: {pattern: ^kube-}}", `"kube-x"`, "", []string{`p: Invalid value: "kube-x": it must not be like ^kube-`}},
	"something else": {"{type: string, not: {pattern: ^kube-}}", `"x"`, "", nil},
	"all of it":      {"{type: string, allOf: [{minLength: 2}, {pattern: ^a}]}", `"ab"`, "", nil},
	"not all of it": {"{type: string, allOf: [{minLength: 2}, {pattern: ^a}]}", `"b"`, "", []string{
		`p: Invalid value: "b": it must have at least 2 characters`, `p: Invalid value: "b": it must be like ^a`,
	}},
	"within alternatives": {"{type: object, properties: {a: {type: object, properties: {b: {type: integer}, c: {type: integer}}}}, anyOf: [{properties: {a: {properties: {b: {minimum: 5}}}}}]}", `{"a":{"b":1,"c":2}}`, "", []string{`p: Invalid value: {"a":{"b":1,"c":2}}: it must be at least one of these: {"properties":{"a":{"properties":{"b":{"minimum":5}}}}}`}},
	"a number or a text":  {"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", `"80%"`, "", nil},
	"half a number": {"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", `1.5`, "", []string{
		"p: Invalid value: 1.5: write a whole number or a text",
	}},

	"a rule":              {window, `{"start":1,"end":2}`, "", nil},
	"a broken rule":       {window, `{"start":2,"end":1}`, "", []string{"p: Invalid value: the start must be before the end"}},
	"broken by a default": {window, `{"end":3}`, "", []string{"p: Invalid value: the start must be before the end"}},
	"a rule without a message": {"{type: integer, x-kubernetes-validations: [{rule: self % 2 == 0}]}", `7`, "", []string{
		"p: Invalid value: 7: it must keep to the rule self % 2 == 0",
	}},
	"a message that is calculated": {"{type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, messageExpression: \"'take ' + string(self + 1)\"}]}", `7`,
		"", []string{"p: Invalid value: 7: take 8"}},
	"a rule that fails": {"{type: array, maxItems: 3, items: {type: integer}, x-kubernetes-validations: [{rule: 'self[1] > 0', message: the second counts}]}",
		`[]`, "", []string{"p: Invalid value: a rule of the stack cannot be evaluated for it: index out of bounds: 1 evaluating rule: the second counts"}},
	"reasons and paths": {reasons, `{"b":"x"}`, "", []string{"p.a: Required value: name one", "p.b: Forbidden: b is of yesterday"}},

	"a transition":                {growing, `{"size":5}`, `{"size":4}`, nil},
	"a forbidden transition":      {growing, `{"size":3}`, `{"size":4}`, []string{"p.size: Invalid value: 3: it must not shrink"}},
	"no transition, as it is new": {growing, `{"size":1}`, "", nil},
	"a transition to a default":   {growing, `{}`, `{"size":4}`, []string{"p.size: Invalid value: 3: it must not shrink"}},
	"a transition from a default": {growing, `{"size":2}`, `{}`, []string{"p.size: Invalid value: 2: it must not shrink"}},
	"nobody can read what was":    {growing, `{"size":2}`, `{`, nil},

	"a list": {disks, `[{"name":"a","size":2}]`, "", nil},
	"faults in a list": {disks, `[{"name":"a","size":2},{"size":3},{"name":"b","zise":4}]`, "", []string{
		"p[1].name: Required value: the stack needs it", "p[2].zise: Invalid value: there is no such field; there are name, size",
	}},
	"a rule in a list": {disks, `[{"name":"a","size":2},{"name":"b","size":3}]`, "", []string{
		"p[1].size: Invalid value: 3: it must keep to the rule self % 2 == 0",
	}},
	"a map": {labels, `{"a":"b"}`, "", nil},
	"faults in a map": {labels, `{"a":"root","b":7}`, "", []string{
		`p[a]: Invalid value: "root": it must not be one of root, admin`, `p[b]: Invalid value: 7: write a text`,
	}},
	"a rule in a map":   {labels, `{"a":"x-1"}`, "", []string{`p[a]: Invalid value: "x-1": x-1 is reserved`}},
	"a default within":  {"{type: object, required: [a], properties: {a: {type: integer, default: 1}}}", `{}`, "", nil},
	"null is a default": {"{type: object, properties: {a: {type: integer, default: 1}}}", `{"a":null}`, "", nil},
	"null is nothing":   {"{type: object, properties: {a: {type: integer}}}", `{"a":null}`, "", []string{"p.a: Invalid value: null: write a whole number"}},

	"a format": {"{type: string, format: ipv4}", `"1.2.3.4"`, "", nil},
	"not of the format": {"{type: string, format: ipv4, example: 192.0.2.1}", `"1.2.3"`, "", []string{
		`p: Invalid value: "1.2.3": it must have the format ipv4, for example 192.0.2.1`,
	}},
	"a format of nobody": {"{type: string, format: shoe}", `"x"`, "", nil},
	"all differ":         {"{type: array, uniqueItems: true, items: {type: integer}}", `[1,2]`, "", nil},
	"one is there twice": {"{type: array, uniqueItems: true, items: {type: integer}}", `[1,2,1]`, "", []string{
		"p[2]: Invalid value: 1: it is there twice; keep one",
	}},
	"no fields are known": {"{type: object}", `{"a":1}`, "", []string{"p.a: Invalid value: there is no such field; the stack takes none here"}},
	"unknown fields":      {"{type: object, x-kubernetes-preserve-unknown-fields: true}", `{"a":1}`, "", nil},
	"a pattern of nobody": {"{type: string, pattern: (}", `"a"`, "", []string{
		`p: Invalid value: "a": the stack's own pattern ( for it is invalid; ask whoever made the stack`,
	}},
	"a rule of nobody":     {"{type: integer, x-kubernetes-validations: [{rule: self.x}]}", `1`, "", nil},
	"a large whole number": {"{type: integer, maximum: 9007199254740993}", `9007199254740993`, "", nil},
	"no value":             {"{type: integer}", `{`, "", []string{"p: Invalid value: it is no value"}},
}

func TestValidate(t *testing.T) {
	for name, c := range valueCases {
		if name == "a rule of nobody" {
			continue // only the verdict counts
		}
		t.Run(name, func(t *testing.T) {
			got := validate(t, schema.ForVariable(parse(t, c.schema)), c.value, c.old)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A provider's schema is for its own use, and need not be one that Cluster API takes.
func TestProvidersAreLenient(t *testing.T) {
	for name, c := range map[string]valueCase{
		"no fields are known": {"{type: object}", `{"a":1}`, "", nil},
		"a pattern of nobody": {"{type: string, pattern: (}", `"a"`, "", nil},
		"no type":             {"{minimum: 1.5}", `1`, "", []string{"p: Invalid value: 1: it must be at least 1.5"}},
		"null":                {"{type: string, nullable: true}", `null`, "", nil},
		"a required default": {"{type: object, required: [a], properties: {a: {type: integer, default: 1}}}", `{}`, "", []string{
			"p.a: Required value: the stack needs it",
		}},
		"none of two":            {cidrOrName, `{}`, "", []string{"p: Invalid value: {}: it must be exactly one of these, and is none: with cidr; with name"}},
		"a rule":                 {window, `{"end":3}`, "", []string{"p: Invalid value: the start must be before the end"}},
		"no schema at all":       {"{type: [string]}", `1`, "", nil},
		"it refers to something": {"{type: string, $ref: '#/definitions/a', definitions: {a: {$ref: '#/definitions/a'}}}", `"a"`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, validate(t, schema.ForProvider(parse(t, c.schema)), c.value, c.old)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestHint(t *testing.T) {
	v := schema.ForVariable(parse(t, "{type: object, properties: {port: {type: integer}, mode: {type: string, enum: [on, off]}}}"))
	v.Hint = func(word string, _ []string) string { return "; not " + word }
	want := []string{
		`p.mode: Invalid value: "of": choose from on, off; not of`,
		"p.prot: Invalid value: there is no such field; there are mode, port; not prot",
	}
	if d := cmp.Diff(want, validate(t, v, `{"prot":1,"mode":"of"}`, "")); d != "" {
		t.Error(d)
	}
}
