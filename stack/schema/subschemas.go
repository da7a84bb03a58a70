package schema

import (
	"fmt"
	"maps"
	"slices"
)

// The fields of a schema that hold one other schema, and those that hold a list of them. Beside these there are
// properties.
var (
	subschemaFields = []string{"additionalProperties", "items", "not"}
	subschemaLists  = []string{"allOf", "anyOf", "oneOf"}
)

// forEachSubschema calls do for each schema directly within another, always in the same order. at is where it is, as
// the linter writes it.
func forEachSubschema(s map[string]any, do func(at string, sub map[string]any)) {
	call := func(at string, v any) {
		if sub, ok := v.(map[string]any); ok {
			do(at, sub)
		}
	}
	props, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		call("."+name, props[name])
	}
	call("[]", s["items"])
	call(".*", s["additionalProperties"])
	call(".not", s["not"])
	for _, k := range subschemaLists {
		list, _ := s[k].([]any)
		for i, v := range list {
			call(fmt.Sprintf(".%s[%d]", k, i), v)
		}
	}
}

// mapSubschema returns what change makes of a schema; what is none stays as it is.
func mapSubschema(v any, change func(map[string]any) map[string]any) any {
	if m, ok := v.(map[string]any); ok {
		return change(m)
	}
	return v
}

// mapSubschemas is mapSubschema for a list.
func mapSubschemas(v any, change func(map[string]any) map[string]any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	var out []any
	for _, e := range list {
		out = append(out, mapSubschema(e, change))
	}
	return out
}

// mapProperties is mapSubschema for properties.
func mapProperties(v any, change func(map[string]any) map[string]any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, sub := range m {
		out[k] = mapSubschema(sub, change)
	}
	return out
}
