// Package params tells people and programs what a release of a stack contains, and what clusters of
// it may choose.
package params

import (
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/schema"
)

// Schema is the JSON Schema of the parameters: an object with one property for each variable of the
// class.
func Schema(r *stack.Release, c *stack.Class) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, v := range c.Variables {
		properties[v.Name] = schema.JSONSchema(v.Schema.OpenAPIV3Schema)
		if v.Required {
			required = append(required, v.Name)
		}
	}
	out := map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"$id":                  "urn:polder:stack:" + r.Name.Tag(),
		"title":                "Parameters of " + r.Name.Tag(),
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
