package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/schema"
)

// hostileSchemas are of authors who mean harm, each with what is said about it.
func hostileSchemas() map[string]struct {
	schema map[string]any
	want   string
} {
	deep := map[string]any{"type": "string"}
	for range 5000 {
		deep = map[string]any{"type": "string", "not": deep}
	}
	wide := map[string]any{}
	for i := range 6000 {
		wide[fmt.Sprint("p", i)] = map[string]any{"type": "string"}
	}
	var rules, enum []any
	for i := range 2000 {
		rules = append(rules, map[string]any{"rule": fmt.Sprintf("self != 'a%d'", i)})
		enum = append(enum, fmt.Sprint(i))
	}
	long := []any{map[string]any{"rule": strings.Repeat("self == self && ", 10_000) + "true"}}
	loop := map[string]any{"type": "object"}
	loop["not"] = loop
	type hostile = struct {
		schema map[string]any
		want   string
	}
	return map[string]hostile{
		"deep":          {deep, "the schema is more than 32 levels deep"},
		"itself":        {loop, "the schema is more than 32 levels deep"},
		"wide":          {map[string]any{"type": "object", "properties": wide}, "the schema has more than 5000 parts"},
		"many rules":    {map[string]any{"type": "string", "x-kubernetes-validations": rules}, "the schema has 2000 rules, and at most 200 are allowed"},
		"long rules":    {map[string]any{"type": "string", "x-kubernetes-validations": long}, "the rules of the schema are longer than 128 KiB"},
		"large pattern": {map[string]any{"type": "string", "pattern": "(" + strings.Repeat("ab", 1000) + "){0,900}"}, "takes too much memory; repeat less in it"},
		"many choices":  {map[string]any{"type": "string", "enum": enum}, "an enumeration has 2000 values, and at most 1000 are allowed"},
	}
}

func TestHostileSchemas(t *testing.T) {
	for name, c := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			problems, _ := schema.Check(t.Context(), c.schema)
			if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
				t.Errorf("the linter says %.300q", problems)
			}
			got := validate(t, schema.ForVariable(c.schema), `"a"`, "")
			if len(got) != 1 || !strings.Contains(got[0], c.want) || !strings.Contains(got[0], "ask whoever made the stack") {
				t.Errorf("a value gets %.300q", got)
			}
			validate(t, schema.ForProvider(c.schema), `"a"`, "")
		})
	}
}

// A check that would take too long, or too much memory, is refused before it begins.
func TestHostileValues(t *testing.T) {
	const slow = "p: Invalid value: to check it takes too long; write less, or ask whoever made the stack"
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n) + item + "]" }
	var alternatives []any
	for range 100 {
		alternatives = append(alternatives, map[string]any{"minimum": 2})
	}
	words := make([]any, 900)
	for i := range words {
		words[i] = strings.Repeat("x", 1000) + fmt.Sprint(i)
	}
	array := func(items map[string]any) map[string]any { return map[string]any{"type": "array", "items": items} }
	many := array(map[string]any{"type": "integer", "anyOf": alternatives})
	bomb := array(map[string]any{"type": "object", "properties": map[string]any{
		"a": map[string]any{"type": "string", "default": strings.Repeat("x", 100_000)},
	}})
	costly := map[string]any{"type": "array", "items": map[string]any{"type": "integer"}, "x-kubernetes-validations": []any{
		map[string]any{"rule": "self.all(a, self.all(b, self.all(c, a + b + c > 0)))", "message": "the sum"},
	}}
	for name, c := range map[string]struct {
		schema map[string]any
		value  string
		want   string
	}{
		"few alternatives":   {many, list(100, "3"), ""},
		"many alternatives":  {many, list(20_000, "3"), slow},
		"a bomb of defaults": {bomb, list(20_000, "{}"), slow},
		"a long pattern": {
			map[string]any{"type": "string", "pattern": "^(" + strings.Repeat("a", 90) + "){0,900}$"}, `"` + strings.Repeat("a", 60_000) + `"`, slow,
		},
		"a list without repetition": {
			map[string]any{"type": "array", "uniqueItems": true, "items": map[string]any{"type": "integer"}}, list(20_000, "1"), slow,
		},
		"errors that repeat choices": {array(map[string]any{"type": "string", "enum": words}), list(5000, `""`), slow},
		"errors that repeat a path": {
			map[string]any{"type": "object", "additionalProperties": array(map[string]any{"type": "string"})},
			`{"` + strings.Repeat("k", 30_000) + `":` + list(10_000, "1") + "}", slow,
		},
		"a costly rule": {
			costly, list(3000, "1"), "p: Invalid value: to check it by the stack's rules takes too long; write less, or ask whoever made the stack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(c.value)) {
				t.Fatal("this is no value")
			}
			got := strings.Join(validate(t, schema.ForVariable(c.schema), c.value, ""), "; ")
			if got != c.want {
				t.Errorf("got %.300q, want %q", got, c.want)
			}
		})
	}
}

// What is wrong very often is not counted to its end, nor is what is in a list that is too long: the library would
// take longer than a webhook may.
func TestMoreMistakesThanAnybodyReads(t *testing.T) {
	text := map[string]any{"type": "string"}
	for name, c := range map[string]struct {
		maxItems any
		want     int
	}{"any number of items": {nil, schema.MaxErrors + 1}, "at most 100 items": {float64(100), 1}} {
		s := map[string]any{"type": "array", "items": map[string]any{
			"type": "object", "required": []any{"a", "b"}, "properties": map[string]any{"a": text, "b": text},
		}}
		if c.maxItems != nil {
			s["maxItems"] = c.maxItems
		}
		got := validate(t, schema.ForVariable(s), "["+strings.Repeat("{},", 15_000)+"{}]", "")
		if len(got) < c.want {
			t.Errorf("%s: %d sentences: %.300q", name, len(got), got)
		}
	}
}
