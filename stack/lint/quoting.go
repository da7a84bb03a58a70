package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/schema"
)

// hostileTexts are values of customers that become other fields of a document, or no document at all, where a template
// puts them into YAML as they are. YAML begins a line also at a carriage return, which indent does not know.
var hostileTexts = []string{"a\nb: c", "a\rb: c", "a\u2028b: c", "a: b: c", `a" b`, "a #", "{a"}

// limits of what is tried for one class, however many variables its schemas have.
const (
	maxLeaves      = 300
	maxSchemaDepth = 8
)

// textLeaf is a text somewhere in a variable: of the variable itself, of a field, or of an item of a list.
type textLeaf struct {
	name    string // for people, such as mirrors[].host
	path    []string
	schema  map[string]any
	hostile []string // what customers can write there; see acceptedTexts
}

// checkQuoting renders each template of a patch with a plain value and with hostile ones in each text that customers
// can write, as far as its schema lets them: the result must have the same fields.
func (l *classLinter) checkQuoting(ctx context.Context) {
	plain := map[string]any{builtin: sampleBuiltin}
	var leaves []textLeaf
	for _, v := range l.class.Variables {
		plain[v.Name] = sampleValue(v.Schema.OpenAPIV3Schema, 0)
		leaves = append(leaves, textLeaves(v.Name, []string{v.Name}, v.Schema.OpenAPIV3Schema, 0)...)
	}
	leaves = leaves[:min(len(leaves), maxLeaves)]
	for i := range leaves { // once, and not for each template
		leaves[i].hostile = acceptedTexts(ctx, leaves[i].schema)
	}
	for _, p := range l.class.Patches {
		for _, d := range p.Definitions {
			for _, j := range d.JSONPatches {
				if j.ValueFrom != nil && j.ValueFrom.Template != "" {
					l.checkTemplateQuoting(p, j, plain, leaves)
				}
			}
		}
	}
}

func (l *classLinter) checkTemplateQuoting(p class.Patch, j class.JSONPatch, plain map[string]any, leaves []textLeaf) {
	t, err := template.New("").Funcs(boundedFuncs()).Parse(j.ValueFrom.Template)
	if err != nil || t.Tree == nil {
		return // checkTemplate has said so
	}
	used := rootFields(t.Root)
	want, err := renderShape(t, plain)
	if err != nil {
		return // samples are not good enough for it; it cannot be judged
	}
	for _, leaf := range leaves {
		if !slices.Contains(used, leaf.path[0]) {
			continue
		}
		for _, text := range leaf.hostile {
			if got, err := renderShape(t, replaceLeaf(plain, leaf.path, text)); err == nil && got == want {
				continue
			}
			at := l.locateAfter(l.locatePatch(p.Name), j.Path)
			l.addWarningAt(at, "patch-quote",
				fmt.Sprintf("patch %q at %s puts %s into YAML as it is: with %q in it, other fields come out", p.Name, j.Path,
					leaf.name, text),
				"write it with | quote, or give it a pattern that has no such texts")
			break
		}
	}
}

// acceptedTexts are the hostile texts that a schema lets customers write.
func acceptedTexts(ctx context.Context, s map[string]any) (out []string) {
	v := schema.ForVariable(s)
	for _, text := range hostileTexts {
		if b, err := json.Marshal(text); err == nil && len(v.Validate(ctx, field.NewPath("x"), b, nil)) == 0 {
			out = append(out, text)
		}
	}
	return out
}

// renderShape renders a template and returns the fields of the result, without its texts. A text that is YAML itself,
// as content of a file often is, counts with its fields.
func renderShape(t *template.Template, data map[string]any) (string, error) {
	b, err := executeBounded(t, data)
	if err != nil {
		return "", err
	}
	var v any
	if err := yaml.Unmarshal(b, &v); err != nil {
		return "", err
	}
	return shapeOf(v, 0), nil
}

func shapeOf(v any, depth int) string {
	switch v := v.(type) {
	case map[string]any:
		var out strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(&out, "%q:%s,", k, shapeOf(v[k], depth))
		}
		return "{" + out.String() + "}"
	case []any:
		var out strings.Builder
		for _, item := range v {
			out.WriteString(shapeOf(item, depth) + ",")
		}
		return "[" + out.String() + "]"
	case string:
		var inner any
		if depth == 0 && strings.Contains(v, "\n") && yaml.Unmarshal([]byte(v), &inner) == nil {
			if _, ok := inner.(map[string]any); ok {
				return "text of " + shapeOf(inner, depth+1)
			}
		}
		return "text"
	}
	return "scalar"
}

// textLeaves returns the texts of a schema.
func textLeaves(name string, path []string, s map[string]any, depth int) (out []textLeaf) {
	if depth > maxSchemaDepth {
		return nil
	}
	path = slices.Clip(path)
	switch s["type"] {
	case "string":
		out = append(out, textLeaf{name: name, path: path, schema: s})
	case "object":
		props, _ := s["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(props)) {
			sub, _ := props[k].(map[string]any)
			out = append(out, textLeaves(name+"."+k, append(path, k), sub, depth+1)...)
		}
	case "array":
		sub, _ := s["items"].(map[string]any)
		out = append(out, textLeaves(name+"[]", append(path, "[]"), sub, depth+1)...)
	}
	return out
}

// sampleValue returns a value for a schema in which every text and every list has something.
func sampleValue(s map[string]any, depth int) any {
	switch s["type"] {
	case "object":
		out := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		for k, v := range props {
			if sub, ok := v.(map[string]any); ok && depth < maxSchemaDepth {
				out[k] = sampleValue(sub, depth+1)
			}
		}
		return out
	case "array":
		sub, _ := s["items"].(map[string]any)
		if depth >= maxSchemaDepth {
			return []any{}
		}
		return []any{sampleValue(sub, depth+1)}
	case "boolean":
		return true
	case "integer", "number":
		return 1
	}
	for _, known := range []any{s["example"], s["default"]} {
		if text, ok := known.(string); ok && text != "" {
			return text
		}
	}
	if all, ok := s["enum"].([]any); ok && len(all) > 0 {
		return all[0]
	}
	return "a"
}

// replaceLeaf returns a copy of data with another text at a path.
func replaceLeaf(data any, path []string, text string) map[string]any {
	out, _ := replaceAt(data, path, text).(map[string]any)
	return out
}

func replaceAt(data any, path []string, text string) any {
	if len(path) == 0 {
		return text
	}
	switch v := data.(type) {
	case map[string]any:
		out := maps.Clone(v)
		out[path[0]] = replaceAt(v[path[0]], path[1:], text)
		return out
	case []any:
		if len(v) > 0 && path[0] == "[]" {
			return []any{replaceAt(v[0], path[1:], text)}
		}
	}
	return data
}

// sampleBuiltin is like what Cluster API gives to templates as builtin.
var sampleBuiltin = map[string]any{
	"cluster": map[string]any{
		"name": "a", "namespace": "b", "uid": "c",
		"topology": map[string]any{"version": "v1.36.0", "class": "d", "classNamespace": "b"},
		"network": map[string]any{
			"serviceDomain": "cluster.local", "services": []any{"10.96.0.0/12"}, "pods": []any{"10.244.0.0/16"},
			"ipFamily": "IPv4",
		},
	},
	"controlPlane": map[string]any{
		"name": "a", "version": "v1.36.0", "replicas": 1,
		"machineTemplate": map[string]any{"infrastructureRef": map[string]any{"name": "a"}},
	},
	"machineDeployment": map[string]any{
		"name": "a", "version": "v1.36.0", "replicas": 1, "class": "a", "topologyName": "a",
		"bootstrap":         map[string]any{"configRef": map[string]any{"name": "a"}},
		"infrastructureRef": map[string]any{"name": "a"},
	},
	"machinePool": map[string]any{"name": "a", "version": "v1.36.0", "replicas": 1, "class": "a", "topologyName": "a"},
}
