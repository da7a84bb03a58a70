package params

import (
	"maps"
	"slices"

	"github.com/polder-kaas/polder/stack/class"
)

// Parameter is what clusters can choose, or a field of it.
type Parameter struct {
	Name        string // with the path of a field: mirrors[].host
	Type        string
	Required    bool
	Default     string // as JSON; empty if there is none
	Allowed     string // in words; empty if the type says it all
	Description string
	Replaces    class.Machines // when it changes
}

// List describes the variables of a class, each followed by its fields, in plain text.
func List(c *class.Class) []Parameter { return lister{}.list(c) }

// ListSchema describes a value by its JSON schema, followed by its fields, as List does. Which machines are replaced
// when it changes, a schema does not say.
func ListSchema(name string, schema map[string]any) []Parameter {
	p := lister{}.describe(name, schema)
	p.Replaces.Unknown = true
	return append([]Parameter{p}, lister{}.listFields(name, schema, p.Replaces)...)
}

// lister puts a quote around values in texts, which is that of Markdown on a page.
type lister struct{ quote string }

func (l lister) list(c *class.Class) (out []Parameter) {
	for _, v := range c.Variables {
		p := l.describe(v.Name, v.Schema.OpenAPIV3Schema)
		p.Required, p.Replaces = v.Required, c.Replaces(v.Name)
		out = append(append(out, p), l.listFields(v.Name, v.Schema.OpenAPIV3Schema, p.Replaces)...)
	}
	return out
}

// listFields describes the fields of objects, and of lists of objects.
func (l lister) listFields(at string, s map[string]any, replaces class.Machines) (out []Parameter) {
	if items, ok := s["items"].(map[string]any); ok {
		out = l.listFields(at+"[]", items, replaces)
	}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		sub, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		p := l.describe(at+"."+name, sub)
		p.Required, p.Replaces = slices.Contains(required, any(name)), replaces
		out = append(append(out, p), l.listFields(p.Name, sub, replaces)...)
	}
	return out
}

func (l lister) describe(name string, s map[string]any) Parameter {
	p := Parameter{Name: name, Type: typeName(s), Allowed: l.describeConstraints(s)}
	if d, ok := s["default"]; ok {
		p.Default = compactJSON(d)
	}
	p.Description, _ = s["description"].(string)
	if e, ok := s["example"]; ok {
		p.Description += " For example " + l.quote + compactJSON(e) + l.quote + "."
	}
	return p
}
