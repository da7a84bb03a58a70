package schema

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// checkStructural checks a schema as Cluster API checks that of a variable when it gets a class: it must be structural,
// its defaults, examples and enumerated values must fit, and its CEL rules must compile and be cheap.
func (c *checker) checkStructural(ctx context.Context, s map[string]any) error {
	props, err := toJSONSchemaProps(s)
	if err != nil {
		return err
	}
	wrapped, err := newStructural(props)
	if err != nil {
		return err
	}
	for _, e := range structuralschema.ValidateStructural(nil, wrapped) {
		path := strings.TrimPrefix(e.Field, "properties["+wrapper+"]")
		c.addProblem(shortenPath(path), "the schema is not structural: %s", joinDetail(e))
	}
	if len(c.problems) > 0 {
		return nil
	}
	// Rules come first: one that does not compile makes defaults and examples look wrong.
	if err := c.checkRuleSet(props); err != nil || len(c.problems) > 0 {
		return err
	}
	value := wrapped.Properties[wrapper]
	judged, err := defaulting.ValidateDefaults(ctx, field.NewPath(wrapper), &value, false, true)
	if err != nil {
		return err
	}
	c.explainDefaults(s, judged)
	return c.checkSamples(ctx, "", s)
}

// joinDetail is an error without its field.
func joinDetail(e *field.Error) string {
	if e.Detail == "" {
		return strings.ToLower(e.Type.String())
	}
	return e.Detail
}

var propertyPath = regexp.MustCompile(`\.?properties\[([^\]]*)\]`)

// shortenPath returns the path of a field of a schema as the linter writes it: that of the value it is about.
func shortenPath(path string) string {
	path = propertyPath.ReplaceAllString(path, ".$1")
	path = strings.NewReplacer(".items", "[]", ".additionalProperties", ".*").Replace(path)
	return strings.TrimPrefix(path, ".")
}

// explainDefaults says which defaults do not fit: in the words of JSON Schema if that finds it, or in the library's.
func (c *checker) explainDefaults(s map[string]any, judged field.ErrorList) {
	if len(judged) == 0 {
		return
	}
	if said := explainDefaultsBelow("", s); len(said) > 0 {
		c.problems = append(c.problems, said...)
		return
	}
	var all []string
	for _, e := range judged {
		explainRule(e)
		path := shortenPath(strings.TrimPrefix(e.Field, wrapper))
		at, below, _ := strings.Cut("."+path, ".default")
		text := prefixPath(strings.TrimPrefix(below, "."), joinDetail(e))
		all = append(all, prefixPath(strings.TrimPrefix(at, "."), "the default does not fit: "+text))
	}
	slices.Sort(all) // the library goes through fields in any order
	c.problems = append(c.problems, slices.Compact(all)...)
}

// explainDefaultsBelow says what JSON Schema finds wrong with every default.
func explainDefaultsBelow(at string, s map[string]any) []string {
	var out []string
	if d, ok := s["default"]; ok {
		if text := explainJSONSchema(s, d); text != "" {
			out = append(out, prefixPath(at, "the default does not fit: "+text))
		}
	}
	props, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if sub, ok := props[name].(map[string]any); ok {
			out = append(out, explainDefaultsBelow(joinPath(at, name), sub)...)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		out = append(out, explainDefaultsBelow(at+"[]", items)...)
	}
	return out
}

// checkSamples checks every example and every enumerated value against the schema that it is in.
func (c *checker) checkSamples(ctx context.Context, at string, s map[string]any) (err error) {
	_, hasExample := s["example"]
	_, hasEnum := s["enum"]
	if hasExample || hasEnum {
		if err := c.checkSamplesOf(ctx, at, s); err != nil {
			return err
		}
	}
	forEachSubschema(s, func(below string, sub map[string]any) {
		if err == nil {
			err = c.checkSamples(ctx, strings.TrimPrefix(at+below, "."), sub)
		}
	})
	return err
}

func (c *checker) checkSamplesOf(ctx context.Context, at string, s map[string]any) error {
	props, err := toJSONSchemaProps(s)
	if err != nil {
		return err
	}
	check := func(what string, value any) error {
		why, err := checkSample(ctx, s, props, value)
		if why != "" {
			c.addProblem(at, "%s does not fit: %s", what, why)
		}
		return err
	}
	if props.Example != nil {
		if err := check("the example", *props.Example); err != nil {
			return err
		}
	}
	for _, v := range props.Enum {
		if v == nil {
			continue
		}
		if err := check(truncate(formatValue(v))+" in enum", v); err != nil {
			return err
		}
	}
	return nil
}

// checkSample says what is wrong with a value; "" if nothing.
func checkSample(
	ctx context.Context, s map[string]any, props *apiextensions.JSONSchemaProps, value any,
) (string, error) {
	v, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return "", err
	}
	if errs := validation.ValidateCustomResource(field.NewPath(wrapper), value, v); len(errs) > 0 {
		return cmp.Or(explainJSONSchema(s, value), joinDetail(errs[0])), nil
	}
	if len(props.XValidations) == 0 {
		return "", nil
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return "", err
	}
	rules := cel.NewValidator(structural, false, celconfig.PerCallLimit)
	errs, _ := rules.Validate(ctx, field.NewPath(wrapper), structural, value, nil, celconfig.RuntimeCELCostBudget)
	if len(errs) == 0 {
		return "", nil
	}
	explainRule(errs[0])
	return joinDetail(errs[0]), nil
}
