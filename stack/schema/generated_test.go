package schema_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/schema"
)

// generator makes schemas, and values of which some fit.
type generator struct{ *rand.Rand }

func (g generator) oneOf(values ...any) any { return values[g.IntN(len(values))] }

// schema makes a schema with a type, of at most the given depth.
func (g generator) schema(depth int) map[string]any {
	kinds := []string{"string", "integer", "number", "boolean", "object", "array", "map", "either"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	kind := kinds[g.IntN(len(kinds))]
	s := map[string]any{"type": kind}
	switch kind {
	case "object":
		s["properties"] = map[string]any{"a": g.schema(depth - 1), "b": g.schema(depth - 1)}
		g.addRule(s, "has(self.a) || !has(self.b)", "!has(oldSelf.a) || has(self.a)")
	case "array":
		s["items"] = g.schema(depth - 1)
	case "map":
		s["type"], s["additionalProperties"] = "object", g.schema(depth-1)
		g.addRule(s, "!('b' in self)")
	case "either":
		delete(s, "type")
		s["x-kubernetes-int-or-string"] = true
	case "string":
		g.addRule(s, "self != 'a'", "self == oldSelf", "self.startsWith('a')")
	case "integer":
		g.addRule(s, "self % 2 == 0", "self >= oldSelf", "10 / self > 1")
	}
	if g.IntN(4) == 0 {
		s["default"] = g.value(s, 2)
	}
	g.addConstraints(s, kind)
	for _, k := range []string{"allOf", "anyOf", "oneOf", "not"} {
		if g.IntN(8) > 0 {
			continue
		}
		if sub := g.constraints(kind); k == "not" {
			s[k] = sub
		} else {
			s[k] = []any{sub, g.constraints(kind)}
		}
	}
	return s
}

func (g generator) addRule(s map[string]any, rules ...any) {
	if g.IntN(4) == 0 {
		s["x-kubernetes-validations"] = []any{map[string]any{"rule": g.oneOf(rules...)}}
	}
}

// constraints makes a schema without a type, as it is in allOf and the like.
func (g generator) constraints(kind string) map[string]any {
	s := map[string]any{}
	g.addConstraints(s, kind)
	if kind == "object" && g.IntN(2) == 0 {
		s["properties"] = map[string]any{"a": map[string]any{"enum": []any{1, "a", nil}}}
	}
	return s
}

func (g generator) addConstraints(s map[string]any, kind string) {
	all := map[string][]any{
		"string":  {"pattern", "^a", "minLength", 1, "maxLength", 1, "enum", []any{"a", "b"}, "format", "ipv4", "format", "shoe"},
		"integer": {"minimum", 1, "maximum", 2, "enum", []any{1, 2}, "exclusiveMinimum", true},
		"number":  {"minimum", 1, "maximum", 2},
		"object":  {"required", []any{"a"}, "required", []any{"b"}, "minProperties", 1, "x-kubernetes-preserve-unknown-fields", true},
		"map":     {"minProperties", 1, "maxProperties", 1},
		"array":   {"minItems", 1, "maxItems", 1, "uniqueItems", true},
	}[kind]
	for i := 0; i < len(all); i += 2 {
		if g.IntN(len(all)) < 2 {
			s[all[i].(string)] = all[i+1]
		}
	}
}

// value makes a value that often is of the type of the schema.
func (g generator) value(s map[string]any, depth int) any {
	kind, _ := s["type"].(string)
	if g.IntN(8) == 0 || depth == 0 {
		kind = ""
	}
	sub := func(k string) map[string]any {
		out, _ := s[k].(map[string]any)
		return out
	}
	switch kind {
	case "string":
		return g.oneOf("a", "b", "ab", "", "1.2.3.4")
	case "integer":
		return g.oneOf(0, 1, 2, 3, 2.0)
	case "array":
		out := []any{}
		for range g.IntN(3) {
			out = append(out, g.value(sub("items"), depth-1))
		}
		return out
	case "object":
		out := map[string]any{}
		for _, k := range []string{"a", "b", "c"} {
			below, _ := sub("properties")[k].(map[string]any)
			if below == nil {
				below = sub("additionalProperties")
			}
			if g.IntN(2) == 0 && (below != nil || g.IntN(4) == 0) {
				out[k] = g.value(below, depth-1)
			}
		}
		return out
	}
	return g.oneOf("a", "", 1, 0, 1.5, true, nil, []any{}, map[string]any{}, map[string]any{"a": 1})
}

// Whatever the schema and the value, we say what Cluster API says, of both.
func FuzzAgreement(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		made := g.schema(3)
		b, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		v, ok := newVariable(t, s)
		if !ok {
			t.Fatalf("Cluster API cannot read %s", b)
		}
		theirs := v.checkSchema(t.Context())
		ours, _ := schema.Check(t.Context(), s)
		if said := strings.Join(ours, "; "); (len(theirs) == 0) != (said == "") {
			t.Errorf("schema %s: Cluster API says %v, and we say %s", b, theirs, said)
		}
		old := ""
		for range 5 {
			raw, err := json.Marshal(g.value(s, 3))
			if err != nil {
				t.Fatal(err)
			}
			refused := v.checkValue(t.Context(), string(raw), old)
			said := validate(t, schema.ForVariable(s), string(raw), old)
			if (len(refused) == 0) != (len(said) == 0) {
				t.Errorf("schema %s, value %s, before %s: Cluster API says %v, and we say %v", b, raw, old, refused, said)
			}
			for _, text := range said {
				if strings.Contains(text, "it does not fit the stack's schema") {
					t.Errorf("schema %s, value %s: we have no sentence of our own: %s", b, raw, text)
				}
			}
			old = string(raw)
		}
	})
}
