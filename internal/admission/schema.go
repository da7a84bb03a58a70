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

// maxDepth is how deep schemas are followed. The stack's linter allows no deeper ones.
const maxDepth = 32

// maxErrors is how many errors are reported at once. More help nobody, and each is many times as long as the value it
// is about.
const maxErrors = 50

// schemaErrors collects the errors of values. It takes at most one more than are reported: then checks stop.
type schemaErrors struct {
	errs     field.ErrorList
	patterns map[string]*regexp.Regexp // by their text; nil if it cannot be compiled
}

// isFull reports whether there are more errors than are reported.
func (f *schemaErrors) isFull() bool { return len(f.errs) > maxErrors }

// add appends errors as far as there is room.
func (f *schemaErrors) add(errs ...*field.Error) {
	f.errs = append(f.errs, errs[:min(len(errs), maxErrors+1-len(f.errs))]...)
}

// compilePattern compiles a pattern once, however many values there are.
func (f *schemaErrors) compilePattern(p string) *regexp.Regexp {
	r, ok := f.patterns[p]
	if !ok {
		r, _ = regexp.Compile(p) // an invalid one is the stack's fault, not the customer's
		if f.patterns == nil {
			f.patterns = map[string]*regexp.Regexp{}
		}
		f.patterns[p] = r
	}
	return r
}

// checkValue collects all errors of a value that the common keywords of schemas find. CEL rules are checked apart;
// oneOf and the like Cluster API checks when it gets the Cluster.
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

// checkType says what to write instead of a value that is of another type than the schema's; "" if it fits.
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

// typeLabel returns what people call a type.
func typeLabel(t string) string {
	return map[string]string{
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "array": "a list", "object": "fields with values",
	}[t]
}

// checkString checks a text's length and pattern. One that is too long is not matched.
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

// exampleHint returns the example of a schema as the end of a sentence.
func exampleHint(schema map[string]any) string {
	if e, ok := schema["example"]; ok {
		return ", for example " + formatValue(e)
	}
	return ""
}

// checkNumber checks the limits of a number. The exclusive ones are booleans, as OpenAPI 3.0 has them.
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

// checkLength reports a wrong length, and returns whether there is too much: then the content is not checked.
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

// checkFields checks the fields of an object.
func (f *schemaErrors) checkFields(at *field.Path, schema, v map[string]any, depth int) {
	known, _ := schema["properties"].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	// A schema without properties says nothing of its fields, so all are allowed.
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

// formatValues formats values for a message.
func formatValues(values []any) []string {
	var out []string
	for _, v := range values {
		out = append(out, formatValue(v))
	}
	return out
}

// formatValue formats a value for a message: texts without quotes, all others as JSON.
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

// omitLongValue returns a value for a message, without those that are too long to be read there.
func omitLongValue(v any) any {
	if s := formatValue(v); len(s) > 100 {
		return field.OmitValueType{}
	}
	return v
}
