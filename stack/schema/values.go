package schema

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
)

// MaxErrors is how many errors of values are reported at once. More help nobody, and each is many times as long as the
// value it is about.
const MaxErrors = 50

// explainer says in plain sentences what is wrong with a value. It collects at most one error more than are reported:
// then it stops.
type explainer struct {
	errs         field.ErrorList
	patterns     map[string]*regexp.Regexp                // by their text; nil if it cannot be compiled
	hint         func(word string, among []string) string // the word that was meant; may be nil
	alternatives bool                                     // look at allOf, anyOf, oneOf and not
	closed       bool                                     // as for Cluster API: an object without properties has no fields
}

func newExplainer(hint func(string, []string) string) *explainer {
	return &explainer{patterns: map[string]*regexp.Regexp{}, hint: hint}
}

// isFull reports whether there are more errors than are reported.
func (f *explainer) isFull() bool { return len(f.errs) > MaxErrors }

// compilePattern compiles a pattern once, however many values there are.
func (f *explainer) compilePattern(p string) *regexp.Regexp {
	r, ok := f.patterns[p]
	if !ok {
		r, _ = regexp.Compile(p) // nil is an invalid one
		f.patterns[p] = r
	}
	return r
}

func (f *explainer) hintFor(word string, among []string) string {
	if f.hint == nil {
		return ""
	}
	return f.hint(word, among)
}

// level is where in a schema the explainer is.
type level struct {
	depth   int
	partial bool // within allOf and the like, which need not name all fields
}

func (l level) below() level { return level{l.depth + 1, l.partial} }

// checkValue collects all errors of a value.
func (f *explainer) checkValue(at *field.Path, schema map[string]any, value any, l level) {
	if f.isFull() || l.depth > maxSchemaDepth || value == nil && schema["nullable"] == true {
		return
	}
	before := len(f.errs)
	addf := func(format string, args ...any) {
		f.errs = append(f.errs, field.Invalid(at, omitLongValue(value), fmt.Sprintf(format, args...)))
	}
	if why := checkType(schema, value); why != "" {
		addf("%s", why)
		return
	}
	if e, ok := schema["enum"].([]any); ok && !containsValue(e, value) {
		words := formatValues(e)
		hint := ""
		if s, ok := value.(string); ok {
			hint = f.hintFor(s, words)
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
		f.checkItems(at, schema, v, l, addf)
	case map[string]any:
		if !checkLength(schema, "minProperties", "maxProperties", len(v), "fields", addf) {
			f.checkFields(at, schema, v, l)
		}
	}
	if f.alternatives && len(f.errs) == before {
		f.checkAlternatives(at, schema, value, l, addf)
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
	intOrString := schema["x-kubernetes-int-or-string"] == true
	either := intOrString && (is == "string" || is == "number")
	switch n, isNumber := value.(float64); {
	case intOrString && want == "" && (!either || isNumber && n != math.Trunc(n)):
		return "write a whole number or a text"
	case either, want == "", want == is, is == "":
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
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"array": "a list", "object": "fields with values",
	}[t]
}

// checkString checks a text's length, pattern and format. One that is too long is not matched.
func (f *explainer) checkString(schema map[string]any, v string, addf func(string, ...any)) {
	if checkLength(schema, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", addf) {
		return
	}
	if p, ok := schema["pattern"].(string); ok {
		switch r := f.compilePattern(p); {
		case r == nil && f.closed:
			addf("the stack's own pattern %s for it is invalid; ask whoever made the stack", p)
		case r != nil && !r.MatchString(v):
			addf("it must be like %s%s", p, exampleHint(schema))
		}
	}
	if name, ok := schema["format"].(string); ok && !hasFormat(name, v) {
		addf("it must have the format %s%s", name, exampleHint(schema))
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

// checkItems checks the entries of a list.
func (f *explainer) checkItems(at *field.Path, schema map[string]any, v []any, l level, addf func(string, ...any)) {
	if checkLength(schema, "minItems", "maxItems", len(v), "entries", addf) {
		return
	}
	items, _ := schema["items"].(map[string]any)
	for i := 0; i < len(v) && !f.isFull(); i++ {
		f.checkValue(at.Index(i), items, v[i], l.below())
		if schema["uniqueItems"] == true && containsValue(v[:i], v[i]) {
			f.errs = append(f.errs, field.Invalid(at.Index(i), omitLongValue(v[i]), "it is there twice; keep one"))
		}
	}
}

// checkFields checks the fields of an object.
func (f *explainer) checkFields(at *field.Path, schema, v map[string]any, l level) {
	known, _ := schema["properties"].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	open = open || l.partial || len(known) == 0 && !f.closed
	open = open || schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true
	names := slices.Sorted(maps.Keys(known))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		sub, ok := known[k].(map[string]any)
		switch {
		case f.isFull():
			return
		case ok:
			f.checkValue(at.Child(k), sub, v[k], l.below())
		case others != nil:
			f.checkValue(at.Key(k), others, v[k], l.below())
		case !open && len(names) == 0:
			f.errs = append(f.errs, refuse(at.Child(k), "there is no such field; the stack takes none here")...)
		case !open:
			text := fmt.Sprintf("there is no such field; there are %s%s", strings.Join(names, ", "), f.hintFor(k, names))
			f.errs = append(f.errs, refuse(at.Child(k), text)...)
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := v[name]; !ok {
			sub, _ := known[name].(map[string]any)
			f.errs = append(f.errs, field.Required(at.Child(name), Description(sub)))
		}
	}
}

// Description returns what a schema says about its values, as the message for one that is missing.
func Description(schema map[string]any) string {
	text, _ := schema["description"].(string)
	if text == "" {
		return "the stack needs it"
	}
	return text
}

// containsValue says whether a value is among others.
func containsValue(among []any, value any) bool {
	return slices.ContainsFunc(among, func(v any) bool { return reflect.DeepEqual(v, value) })
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
