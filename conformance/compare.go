package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// comparison finds what a document lacks of another.
type comparison struct {
	published, served map[string]any
	missing           []string
}

// findMissing says which operations, parameters, answers and fields of the published document another lacks, and what
// it needs that the published one does not. What schemas are called, and whether they stand by themselves, is open.
func findMissing(published, served map[string]any) []string {
	c := &comparison{published: published, served: served}
	for _, path := range sortedKeys(published["paths"]) {
		methods := object(object(published["paths"])[path])
		for _, method := range sortedKeys(methods) {
			other := object(object(object(served["paths"])[path])[method])
			where := strings.ToUpper(method) + " " + path
			if len(other) == 0 {
				c.add("it has no %s", where)
				continue
			}
			c.compareOperation(where, object(methods[method]), other)
		}
	}
	return c.missing
}

func (c *comparison) add(format string, args ...any) {
	c.missing = append(c.missing, fmt.Sprintf(format, args...))
}

func (c *comparison) compareOperation(where string, want, got map[string]any) {
	if want["operationId"] != got["operationId"] {
		c.add("%s is called %v, not %v", where, got["operationId"], want["operationId"])
	}
	parameters := c.parameters(c.served, got)
	for name, p := range c.parameters(c.published, want) {
		if parameters[name] == nil {
			c.add("%s takes no %s", where, name)
			continue
		}
		c.compareSchema(where+" "+name, p["schema"], parameters[name]["schema"], 0)
		if p["required"] != true && parameters[name]["required"] == true {
			c.add("%s needs %s", where, name)
		}
		delete(parameters, name)
	}
	for name, p := range parameters {
		if p["required"] == true {
			c.add("%s needs %s, which is not published", where, name)
		}
	}
	c.compareContent(where+" body", want["requestBody"], got["requestBody"])
	for _, code := range sortedKeys(want["responses"]) {
		answer := object(got["responses"])[code]
		if answer == nil {
			c.add("%s does not say that it answers %s", where, code)
			continue
		}
		c.compareContent(where+" "+code, object(want["responses"])[code], answer)
	}
	slices.Sort(c.missing)
}

// parameters are those of an operation by where they are and their names.
func (c *comparison) parameters(root, o map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	list, _ := o["parameters"].([]any)
	for _, v := range list {
		p := resolve(root, v)
		out[fmt.Sprint(p["in"], " ", p["name"])] = p
	}
	return out
}

func (c *comparison) compareContent(where string, want, got any) {
	others := object(resolve(c.served, got)["content"])
	content := object(resolve(c.published, want)["content"])
	for _, kind := range sortedKeys(content) {
		if others[kind] == nil {
			c.add("%s is not of type %s", where, kind)
			continue
		}
		c.compareSchema(where, object(content[kind])["schema"], object(others[kind])["schema"], 0)
	}
}

// maxSchemaDepth is far more than the published document has.
const maxSchemaDepth = 20

func (c *comparison) compareSchema(where string, wanted, had any, depth int) {
	want, got := resolve(c.published, wanted), resolve(c.served, had)
	if depth > maxSchemaDepth || len(want) == 0 {
		return
	}
	if t, ok := want["type"].(string); ok && !slices.Contains(typesOf(got), t) {
		c.add("%s is of type %v, not %v", where, got["type"], t)
		return
	}
	for _, name := range sortedKeys(want["properties"]) {
		field := object(got["properties"])[name]
		if field == nil {
			c.add("%s has no field %s", where, name)
			continue
		}
		c.compareSchema(where+" "+name, object(want["properties"])[name], field, depth+1)
	}
	if want["items"] != nil {
		c.compareSchema(where+"[]", want["items"], got["items"], depth+1)
	}
}

// typesOf are one or more, as version 3.1 has them.
func typesOf(schema map[string]any) (out []string) {
	all, ok := schema["type"].([]any)
	if !ok {
		all = []any{schema["type"]}
	}
	for _, t := range all {
		out = append(out, fmt.Sprint(t))
	}
	return out
}

// resolve follows references within a document.
func resolve(root map[string]any, v any) map[string]any {
	const most = 10
	o := object(v)
	for range most {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o
		}
		at := root
		for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			at = object(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)])
		}
		o = at
	}
	return o
}

func sortedKeys(v any) []string { return slices.Sorted(maps.Keys(object(v))) }
