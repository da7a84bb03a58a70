// Package schema checks the schemas of class variables and turns them into JSON Schema.
package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/stack/render"
)

var knownTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// knownFields are the fields of a variable's schema in Cluster API.
var knownFields = []string{
	"additionalProperties", "allOf", "anyOf", "default", "description", "enum", "example", "exclusiveMaximum",
	"exclusiveMinimum", "format", "items",
	"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "not",
	"oneOf", "pattern", "properties",
	"required", "type", "uniqueItems", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
	"x-kubernetes-validations", "x-metadata",
}

const maxDepth = 30

// Check says what Cluster API would refuse in the schema of a variable, and what it would accept
// without any effect.
func Check(ctx context.Context, s map[string]any) (problems, ineffective []string) {
	if len(s) == 0 {
		return []string{"openAPIV3Schema is missing"}, nil
	}
	size := checkSchemaSize(s)
	if size != nil && !errors.Is(size, errTooDeep) {
		return []string{size.Error()}, nil
	}
	c := &checker{}
	c.checkSchema("", s, 0)
	// Deeper than the checker looks there may be allOf and the like.
	if len(c.problems) == 0 && size != nil {
		c.addProblem("", "%v", size)
	}
	// The library can say more only about a schema that it can use at all.
	if len(c.problems) == 0 {
		if err := catch(func() error { return c.checkStructural(ctx, s) }); err != nil {
			c.addProblem("", "the schema cannot be used: %v", err)
		}
	}
	return c.problems, c.ineffective
}

type checker struct {
	problems, ineffective []string
	nodes                 int
}

func (c *checker) addProblem(at, format string, args ...any) {
	c.problems = append(c.problems, prefixPath(at, fmt.Sprintf(format, args...)))
}

func prefixPath(at, text string) string {
	if at == "" {
		return text
	}
	return at + ": " + text
}

func (c *checker) checkSchema(at string, s map[string]any, depth int) {
	if depth > maxDepth {
		c.addProblem(at, "the schema is more than %d levels deep", maxDepth)
		return
	}
	if c.nodes++; c.nodes > maxSchemaNodes {
		return // it is too deep as well, or its size would have been reported
	}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(knownFields, k) {
			c.addProblem(at, "the field %s is not known in schemas of variables", k)
		}
	}
	typ, _ := s["type"].(string)
	free := s["x-kubernetes-int-or-string"] == true || s["x-kubernetes-preserve-unknown-fields"] == true
	if !slices.Contains(knownTypes, typ) && (typ != "" || !free) {
		c.addProblem(at, "the type %q is none of %s", fmt.Sprint(s["type"]), strings.Join(knownTypes, ", "))
	}
	c.checkObject(at, typ, s, depth)
	c.checkArray(at, typ, s, depth)
	if p, ok := s["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			c.addProblem(at, "the pattern %q is no regular expression: %v", p, err)
		}
	}
	if e, ok := s["enum"]; ok {
		if list, ok := e.([]any); !ok || len(list) == 0 {
			c.addProblem(at, "enum must be a list of values")
		}
	}
}

func (c *checker) checkObject(at, typ string, s map[string]any, depth int) {
	props, hasProps := s["properties"].(map[string]any)
	if hasProps && typ != "object" {
		c.addProblem(at, "only an object has properties, and this is %q", typ)
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		c.checkSchema(joinPath(at, "*"), more, depth+1)
		if hasProps {
			c.addProblem(at, "a schema has either properties or additionalProperties")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if sub, ok := props[name].(map[string]any); ok {
			c.checkSchema(joinPath(at, name), sub, depth+1)
		} else {
			c.addProblem(joinPath(at, name), "there must be a schema")
		}
	}
	required, _ := s["required"].([]any)
	if len(required) > 0 && typ != "object" {
		c.ineffective = append(c.ineffective,
			prefixPath(at, fmt.Sprintf("required means nothing in %q; in a list it belongs below items", typ)))
		return
	}
	for _, r := range required {
		if _, ok := props[fmt.Sprint(r)]; !ok {
			c.addProblem(at, "%v is required and not among the properties", r)
		}
	}
}

func (c *checker) checkArray(at, typ string, s map[string]any, depth int) {
	items, ok := s["items"].(map[string]any)
	switch {
	case typ == "array" && !ok:
		c.addProblem(at, "an array must have items")
	case ok && typ != "array":
		c.addProblem(at, "only an array has items, and this is %q", typ)
	case ok:
		c.checkSchema(at+"[]", items, depth+1)
	}
}

func joinPath(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// Validate checks a value against the schema of a variable.
func Validate(ctx context.Context, s map[string]any, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	errs := ForVariable(s).Validate(ctx, field.NewPath("value"), b, nil)
	if len(errs) == 0 {
		return nil
	}
	if text := explainJSONSchema(s, value); text != "" {
		return errors.New(text)
	}
	var out []string
	for _, e := range errs {
		out = append(out, prefixPath(strings.TrimPrefix(strings.TrimPrefix(e.Field, "value"), "."), e.Detail))
	}
	return errors.New(strings.Join(out, "; "))
}

// explainJSONSchema says what JSON Schema finds wrong with a value; "" if nothing.
func explainJSONSchema(s map[string]any, value any) string {
	b, err := json.Marshal(JSONSchema(s))
	if err != nil {
		return ""
	}
	compiled, err := render.CompileSchema(b)
	if err != nil {
		return ""
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		return ""
	}
	var invalid *jsonschema.ValidationError
	if errors.As(compiled.Validate(v), &invalid) {
		return strings.Join(render.Explain(invalid), "; ")
	}
	return ""
}
