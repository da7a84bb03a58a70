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

	"github.com/polder-kaas/polder/internal/suggest"
)

// maxDepth of schemas; the stack's linter allows no more.
const maxDepth = 32

// maxErrors is how many are told at once. More help nobody, and each is many times as long as what it is about.
const maxErrors = 50

// schemaErrors are what is wrong with values. There are at most one more than are told: then nobody looks any further.
type schemaErrors struct {
	errs     field.ErrorList
	patterns map[string]*regexp.Regexp // nil: nobody can read it
}

func (f *schemaErrors) isFull() bool { return len(f.errs) > maxErrors }

func (f *schemaErrors) add(errs ...*field.Error) {
	f.errs = append(f.errs, errs[:min(len(errs), maxErrors+1-len(f.errs))]...)
}

// compilePattern is read once, however many values there are.
func (f *schemaErrors) compilePattern(p string) *regexp.Regexp {
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

// checkValue finds all that is wrong with a value, as far as the common words of schemas go. What is said in CEL, or by oneOf
// and the like, Cluster API says when it is given the cluster.
func (f *schemaErrors) checkValue(at *field.Path, schema map[string]any, value any, depth int) {
	if f.isFull() || depth > maxDepth || value == nil && schema["nullable"] == true {
		return
	}
	if why := checkType(schema, value); why != "" {
		f.add(field.Invalid(at, omitLongValue(value), why))
		return
	}
	addf := func(format string, args ...any) {
		f.add(field.Invalid(at, omitLongValue(value), fmt.Sprintf(format, args...)))
	}
	if e, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(e, func(v any) bool { return reflect.DeepEqual(v, value) }) {
		words := formatValues(e)
		hint := ""
		if s, ok := value.(string); ok {
			hint = suggest.Hint(s, words)
		}
		addf("choose from %s%s", strings.Join(words, ", "), hint)
		return
	}
	switch v := value.(type) {
	case string:
		f.checkString(schema, v, addf)
	case float64:
		checkNumber(schema, v, addf)
	case []any:
		if checkLength(schema, "minItems", "maxItems", len(v), "entries", addf) {
			return
		}
		items, _ := schema["items"].(map[string]any)
		for i := 0; i < len(v) && !f.isFull(); i++ {
			f.checkValue(at.Index(i), items, v[i], depth+1)
		}
	case map[string]any:
		if !checkLength(schema, "minProperties", "maxProperties", len(v), "fields", addf) {
			f.checkFields(at, schema, v, depth)
		}
	}
}

// checkType says that a value is of another type than the schema's.
func checkType(schema map[string]any, value any) string {
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
			return "write " + typeLabel(want)
		}
		return ""
	}
	return "write " + typeLabel(want)
}

// typeLabel is how people call a type.
func typeLabel(t string) string {
	return map[string]string{
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a list", "object": "fields with values",
	}[t]
}

func (f *schemaErrors) checkString(schema map[string]any, v string, addf func(string, ...any)) {
	long := checkLength(schema, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", addf)
	p, ok := schema["pattern"].(string)
	if !ok || long {
		return
	}
	if r := f.compilePattern(p); r != nil && !r.MatchString(v) {
		addf("it must be like %s%s", p, exampleHint(schema))
	}
}

func exampleHint(schema map[string]any) string {
	if e, ok := schema["example"]; ok {
		return ", for example " + formatValue(e)
	}
	return ""
}

func checkNumber(schema map[string]any, v float64, addf func(string, ...any)) {
	if least, ok := schema["minimum"].(float64); ok {
		switch {
		case schema["exclusiveMinimum"] == true && v <= least:
			addf("it must be more than %s", formatValue(least))
		case v < least:
			addf("it must be at least %s", formatValue(least))
		}
	}
	if most, ok := schema["maximum"].(float64); ok {
		switch {
		case schema["exclusiveMaximum"] == true && v >= most:
			addf("it must be less than %s", formatValue(most))
		case v > most:
			addf("it must be at most %s", formatValue(most))
		}
	}
}

// checkLength says so, and returns whether there is too much: then what is in it is not looked at.
func checkLength(schema map[string]any, least, most string, n int, of string, addf func(string, ...any)) bool {
	if l, ok := schema[least].(float64); ok && float64(n) < l {
		addf("it must have at least %s %s", formatValue(l), of)
	}
	m, ok := schema[most].(float64)
	if !ok || float64(n) <= m {
		return false
	}
	addf("it must have at most %s %s", formatValue(m), of)
	return true
}

// checkFields checks those of an object.
func (f *schemaErrors) checkFields(at *field.Path, schema, v map[string]any, depth int) {
	known, _ := schema["properties"].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	open = open || schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true || len(known) == 0
	names := slices.Sorted(maps.Keys(known))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		sub, ok := known[k].(map[string]any)
		switch {
		case f.isFull():
			return
		case ok:
			f.checkValue(at.Child(k), sub, v[k], depth+1)
		case others != nil:
			f.checkValue(at.Key(k), others, v[k], depth+1)
		case !open:
			f.add(field.Invalid(at.Child(k), field.OmitValueType{}, fmt.Sprintf("there is no such field; there are %s%s", strings.Join(names, ", "), suggest.Hint(k, names))))
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := v[name]; !ok {
			sub, _ := known[name].(map[string]any)
			f.add(field.Required(at.Child(name), schemaDescription(sub)))
		}
	}
}

func formatValues(values []any) []string {
	var out []string
	for _, v := range values {
		out = append(out, formatValue(v))
	}
	return out
}

func formatValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// omitLongValue is a value for a message; long ones tell nobody anything.
func omitLongValue(v any) any {
	if s := formatValue(v); len(s) > 100 {
		return field.OmitValueType{}
	}
	return v
}
