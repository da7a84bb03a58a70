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

// violations says all that is wrong with a value, as far as the common words of schemas go. What is said in CEL,
// or by oneOf and the like, Cluster API says when it is given the cluster.
func violations(at *field.Path, schema map[string]any, value any, depth int) field.ErrorList {
	if depth > maxDepth || value == nil && schema["nullable"] == true {
		return nil
	}
	if why := typed(schema, value); why != "" {
		return field.ErrorList{field.Invalid(at, short(value), why)}
	}
	var errs field.ErrorList
	wrong := func(format string, args ...any) {
		errs = append(errs, field.Invalid(at, short(value), fmt.Sprintf(format, args...)))
	}
	if e, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(e, func(v any) bool { return reflect.DeepEqual(v, value) }) {
		words := texts(e)
		hint := ""
		if s, ok := value.(string); ok {
			hint = nearest.Hint(s, words)
		}
		wrong("choose from %s%s", strings.Join(words, ", "), hint)
		return errs
	}
	switch v := value.(type) {
	case string:
		stringWrong(schema, v, wrong)
	case float64:
		numberWrong(schema, v, wrong)
	case []any:
		lengthWrong(schema, "minItems", "maxItems", len(v), "entries", wrong)
		items, _ := schema["items"].(map[string]any)
		for i := range v {
			errs = append(errs, violations(at.Index(i), items, v[i], depth+1)...)
		}
	case map[string]any:
		lengthWrong(schema, "minProperties", "maxProperties", len(v), "fields", wrong)
		errs = append(errs, fields(at, schema, v, depth)...)
	}
	return errs
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

func stringWrong(schema map[string]any, v string, wrong func(string, ...any)) {
	lengthWrong(schema, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", wrong)
	p, ok := schema["pattern"].(string)
	if !ok {
		return
	}
	if r, err := regexp.Compile(p); err == nil && !r.MatchString(v) {
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

func lengthWrong(schema map[string]any, least, most string, n int, of string, wrong func(string, ...any)) {
	if l, ok := schema[least].(float64); ok && float64(n) < l {
		wrong("it must have at least %s %s", text(l), of)
	}
	if m, ok := schema[most].(float64); ok && float64(n) > m {
		wrong("it must have at most %s %s", text(m), of)
	}
}

// fields checks those of an object.
func fields(at *field.Path, schema, v map[string]any, depth int) field.ErrorList {
	var errs field.ErrorList
	known, _ := schema["properties"].(map[string]any)
	others, open := schema["additionalProperties"].(map[string]any)
	open = open || schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true || len(known) == 0
	names := slices.Sorted(maps.Keys(known))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		sub, ok := known[k].(map[string]any)
		switch {
		case ok:
			errs = append(errs, violations(at.Child(k), sub, v[k], depth+1)...)
		case others != nil:
			errs = append(errs, violations(at.Key(k), others, v[k], depth+1)...)
		case !open:
			errs = append(errs, field.Invalid(at.Child(k), field.OmitValueType{}, fmt.Sprintf("there is no such field; there are %s%s", strings.Join(names, ", "), nearest.Hint(k, names))))
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := v[name]; !ok {
			sub, _ := known[name].(map[string]any)
			errs = append(errs, field.Required(at.Child(name), describe(sub)))
		}
	}
	return errs
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
