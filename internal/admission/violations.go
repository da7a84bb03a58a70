package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/internal/nearest"
)

// maxDepth of schemas; the stack's linter allows no more.
const maxDepth = 32

// maxErrors is how many are told at once. More help nobody, and each is many times as long as what it is about.
const maxErrors = 50

// findings are what is wrong with values. There are at most one more than are told: then nobody looks any further.
type findings struct {
	errs     field.ErrorList
	patterns map[string]*regexp.Regexp // nil: nobody can read it
}

func (f *findings) full() bool { return len(f.errs) > maxErrors }

func (f *findings) add(errs ...*field.Error) {
	f.errs = append(f.errs, errs[:min(len(errs), maxErrors+1-len(f.errs))]...)
}

// pattern is read once, however many values there are.
func (f *findings) pattern(p string) *regexp.Regexp {
	r, ok := f.patterns[p]
	if !ok {
		r, _ = regexp.Compile(p) // one that is none is the stack's fault, not the customer's
		if f.patterns == nil {
			f.patterns = map[string]*regexp.Regexp{}
		}
		f.patterns[p] = r
	}
	return r
}

// check finds all that is wrong with a value, as far as the common words of schemas go. What is said in CEL, or by oneOf
// and the like, Cluster API says when it is given the cluster.
func (f *findings) check(at *field.Path, schema map[string]any, value any, depth int) {
	if f.full() || depth > maxDepth || value == nil && schema["nullable"] == true {
		return
	}
	if why := typed(schema, value); why != "" {
		f.add(field.Invalid(at, short(value), why))
		return
	}
	wrong := func(format string, args ...any) {
		f.add(field.Invalid(at, short(value), fmt.Sprintf(format, args...)))
	}
	if e, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(e, func(v any) bool { return reflect.DeepEqual(v, value) }) {
		words := texts(e)
		hint := ""
		if s, ok := value.(string); ok {
			hint = nearest.Hint(s, words)
		}
		wrong("choose from %s%s", strings.Join(words, ", "), hint)
		return
	}
	switch v := value.(type) {
	case string:
		f.text(schema, v, wrong)
	case float64:
		numberWrong(schema, v, wrong)
	case []any:
		if lengthWrong(schema, "minItems", "maxItems", len(v), "entries", wrong) {
			return
		}
		items, _ := schema["items"].(map[string]any)
		for i := 0; i < len(v) && !f.full(); i++ {
			f.check(at.Index(i), items, v[i], depth+1)
		}
	case map[string]any:
		if !lengthWrong(schema, "minProperties", "maxProperties", len(v), "fields", wrong) {
			f.fields(at, schema, v, depth)
		}
	}
}

// typed says that a value is of another type than the schema's.
func typed(schema map[string]any, value any) string {
	want, _ := schema["type"].(string)
	is := ""
	switch v := value.(type) {
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		is = "number"
		if v == math.Trunc(v) && want == "integer" {
			is = "integer"
		}
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	}
	switch {
	case schema["x-kubernetes-int-or-string"] == true && (is == "string" || is == "number"), want == "", want == is, is == "":
		if is == "" && want != "" {
			return "write " + aValue(want)
		}
		return ""
	}
	return "write " + aValue(want)
}

// aValue is how people call a type.
func aValue(t string) string {
	return map[string]string{
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a list", "object": "fields with values",
	}[t]
}

func (f *findings) text(schema map[string]any, v string, wrong func(string, ...any)) {
	long := lengthWrong(schema, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", wrong)
	p, ok := schema["pattern"].(string)
	if !ok || long {
		return
	}
	if r := f.pattern(p); r != nil && !r.MatchString(v) {
		wrong("it must be like %s%s", p, example(schema))
	}
}

func example(schema map[string]any) string {
	if e, ok := schema["example"]; ok {
		return ", for example " + text(e)
	}
	return ""
}

func numberWrong(schema map[string]any, v float64, wrong func(string, ...any)) {
	if least, ok := schema["minimum"].(float64); ok {
		switch {
		case schema["exclusiveMinimum"] == true && v <= least:
			wrong("it must be more than %s", text(least))
		case v < least:
			wrong("it must be at least %s", text(least))
		}
	}
	if most, ok := schema["maximum"].(float64); ok {
		switch {
		case schema["exclusiveMaximum"] == true && v >= most:
			wrong("it must be less than %s", text(most))
		case v > most:
			wrong("it must be at most %s", text(most))
		}
	}
}

// lengthWrong says so, and returns whether there is too much: then what is in it is not looked at.
func lengthWrong(schema map[string]any, least, most string, n int, of string, wrong func(string, ...any)) bool {
	if l, ok := schema[least].(float64); ok && float64(n) < l {
		wrong("it must have at least %s %s", text(l), of)
	}
	m, ok := schema[most].(float64)
	if !ok || float64(n) <= m {
		return false
	}
	wrong("it must have at most %s %s", text(m), of)
	return true
}

// fields checks those of an object.
func (f *findings) fields(at *field.Path, schema, v map[string]any, depth int) {
	known, _ := schema["properties"].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	open = open || schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true || len(known) == 0
	names := slices.Sorted(maps.Keys(known))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		sub, ok := known[k].(map[string]any)
		switch {
		case f.full():
			return
		case ok:
			f.check(at.Child(k), sub, v[k], depth+1)
		case others != nil:
			f.check(at.Key(k), others, v[k], depth+1)
		case !open:
			f.add(field.Invalid(at.Child(k), field.OmitValueType{}, fmt.Sprintf("there is no such field; there are %s%s", strings.Join(names, ", "), nearest.Hint(k, names))))
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := v[name]; !ok {
			sub, _ := known[name].(map[string]any)
			f.add(field.Required(at.Child(name), describe(sub)))
		}
	}
}

func texts(values []any) []string {
	var out []string
	for _, v := range values {
		out = append(out, text(v))
	}
	return out
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// short is a value for a message; long ones tell nobody anything.
func short(v any) any {
	if s := text(v); len(s) > 100 {
		return field.OmitValueType{}
	}
	return v
}
