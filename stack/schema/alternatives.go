package schema

import (
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// maxAlternatives is how many alternatives a sentence names, and maxDescription how many characters of each.
const (
	maxAlternatives = 5
	maxDescription  = 100
)

// checkAlternatives checks a value against allOf, anyOf, oneOf and not.
func (f *explainer) checkAlternatives(
	at *field.Path, schema map[string]any, value any, l level, addf func(string, ...any),
) {
	within := level{l.depth + 1, true}
	for _, sub := range subschemasIn(schema, "allOf") {
		f.checkValue(at, sub, value, within)
	}
	fitting := func(keyword string) (all, fit []map[string]any) {
		all = subschemasIn(schema, keyword)
		for _, sub := range all {
			if f.fits(sub, value, within) {
				fit = append(fit, sub)
			}
		}
		return all, fit
	}
	if all, fit := fitting("anyOf"); len(all) > 0 && len(fit) == 0 {
		addf("it must be at least one of these: %s", describeSchemas(all))
	}
	all, fit := fitting("oneOf")
	switch {
	case len(all) > 0 && len(fit) == 0:
		addf("it must be exactly one of these, and is none: %s", describeSchemas(all))
	case len(fit) > 1:
		addf("it must be exactly one of these, and is %d of them: %s", len(fit), describeSchemas(all))
	}
	if not, ok := schema["not"].(map[string]any); ok && f.fits(not, value, within) {
		addf("it must not be %s", describeSchema(not))
	}
}

// fits says whether a value has no errors.
func (f *explainer) fits(schema map[string]any, value any, l level) bool {
	silent := &explainer{patterns: f.patterns, alternatives: true}
	silent.checkValue(nil, schema, value, l)
	return len(silent.errs) == 0
}

func subschemasIn(schema map[string]any, keyword string) (out []map[string]any) {
	list, _ := schema[keyword].([]any)
	for _, v := range list {
		if sub, ok := v.(map[string]any); ok {
			out = append(out, sub)
		}
	}
	return out
}

// describeSchemas names alternatives.
func describeSchemas(all []map[string]any) string {
	var out []string
	for _, s := range all[:min(len(all), maxAlternatives)] {
		out = append(out, describeSchema(s))
	}
	if more := len(all) - maxAlternatives; more > 0 {
		out = append(out, fmt.Sprintf("or %d more", more))
	}
	return strings.Join(out, "; ")
}

// describeSchema says in a few words which values a schema takes: those of its author, or of its commonest fields.
// Where that would leave out something, it is the schema itself.
func describeSchema(s map[string]any) string {
	if text, _ := s["description"].(string); text != "" {
		return truncate(text)
	}
	t, _ := s["type"].(string)
	out := typeLabel(t)
	constraints := 0
	for k, v := range s {
		if k == "type" {
			continue
		}
		constraints++
		text := describeConstraint(k, v)
		if text == "" {
			constraints = 2
		}
		out = strings.TrimSpace(out + " " + text)
	}
	if out == "" || constraints > 1 {
		out = formatValue(s)
	}
	return truncate(out)
}

// describeConstraint describes one field of a schema; "" if it is none of the commonest.
func describeConstraint(keyword string, v any) string {
	list, _ := v.([]any)
	words := strings.Join(formatValues(list), ", ")
	switch {
	case keyword == "enum" && len(list) == 1:
		return words
	case keyword == "enum" && len(list) > 0:
		return "one of " + words
	case keyword == "required" && len(list) > 0:
		return "with " + strings.Join(formatValues(list), " and ")
	}
	for k, format := range map[string]string{
		"pattern": "like %s", "format": "of the format %s", "minimum": "of at least %s", "maximum": "of at most %s",
		"minLength": "of at least %s characters", "maxLength": "of at most %s characters",
		"minItems": "of at least %s entries", "maxItems": "of at most %s entries",
	} {
		if k == keyword {
			return fmt.Sprintf(format, formatValue(v))
		}
	}
	return ""
}

// truncate shortens a text for a sentence.
func truncate(s string) string {
	if r := []rune(s); len(r) > maxDescription {
		return string(r[:maxDescription]) + "…"
	}
	return s
}

// hasFormat says whether a text has a format. Formats that Kubernetes does not know are not checked.
func hasFormat(format, text string) bool {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}, Format: format}}
	strip := validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())
	if err := strip(s); err != nil || s.Format == "" {
		return true
	}
	return strfmt.Default.Validates(format, text)
}
