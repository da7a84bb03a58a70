// Kindreference writes the reference page of all kinds, every field of each, from their definitions in config/crd.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/polder-kaas/polder/config/crd"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	err := writePage(w)
	if err = cmp.Or(err, w.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "kindreference:", err)
		os.Exit(1)
	}
}

func writePage(w io.Writer) error {
	all, err := crd.All()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Or(cmp.Compare(a.Spec.Group, b.Spec.Group), cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind))
	})
	fmt.Fprintln(w, "# Kinds\n\nEvery field of every kind of Polder, made from their definitions by `make generate`. A field in **bold** must be given where its parent is.")
	for _, c := range all {
		for i := range c.Spec.Versions {
			writeKind(w, c, &c.Spec.Versions[i])
		}
	}
	return nil
}

func writeKind(w io.Writer, c *apiextensionsv1.CustomResourceDefinition,
	v *apiextensionsv1.CustomResourceDefinitionVersion) {
	n := c.Spec.Names
	fmt.Fprintf(w, "\n## %s\n\n`apiVersion: %s/%s`, %s", n.Kind, c.Spec.Group, v.Name,
		strings.ToLower(string(c.Spec.Scope)))
	if len(n.ShortNames) > 0 {
		fmt.Fprintf(w, "; kubectl knows it as `%s`", strings.Join(n.ShortNames, "`, `"))
	}
	fmt.Fprintln(w, ".")
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return
	}
	root := v.Schema.OpenAPIV3Schema
	if root.Description != "" {
		fmt.Fprintf(w, "\n%s\n", root.Description)
	}
	fmt.Fprintln(w, "\n| Field | Type | Meaning |\n|---|---|---|")
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue // as every object has them
		}
		p := root.Properties[name]
		writeField(w, name, &p, slices.Contains(root.Required, name))
	}
}

// writeField writes a row for a field, and for all fields below it.
func writeField(w io.Writer, path string, s *apiextensionsv1.JSONSchemaProps, required bool) {
	name := "`" + path + "`"
	if required {
		name = "**" + name + "**"
	}
	fmt.Fprintf(w, "| %s | %s | %s |\n", name, typeOf(s), meaningOf(s))
	below, suffix := s, ""
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		below, suffix = s.Items.Schema, "[]"
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		below, suffix = s.AdditionalProperties.Schema, ".*"
	}
	if isCondition(below) {
		return // Kubernetes' own words on it are long, and the same everywhere
	}
	for _, child := range slices.Sorted(maps.Keys(below.Properties)) {
		p := below.Properties[child]
		writeField(w, path+suffix+"."+child, &p, slices.Contains(below.Required, child))
	}
}

// isCondition says that a schema is the one of conditions, which all kinds of Kubernetes share.
func isCondition(s *apiextensionsv1.JSONSchemaProps) bool {
	_, ok := s.Properties["lastTransitionTime"]
	return ok && len(s.Properties) == 6
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case isCondition(s):
		return "condition"
	case s.XIntOrString:
		return "integer or string"
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map to " + typeOf(s.AdditionalProperties.Schema)
	case s.Type == "" && s.XPreserveUnknownFields != nil:
		return "any"
	}
	return cmp.Or(s.Format, s.Type, "any")
}

// meaningOf is the description in one line, with what the schema asks of values.
func meaningOf(s *apiextensionsv1.JSONSchemaProps) string {
	text := strings.Join(strings.Fields(s.Description), " ")
	for _, rule := range rulesOf(s) {
		text = strings.TrimSpace(text + " " + rule)
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

func rulesOf(s *apiextensionsv1.JSONSchemaProps) (rules []string) {
	add := func(format string, args ...any) { rules = append(rules, fmt.Sprintf(format+".", args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, e := range s.Enum {
			values = append(values, "`"+string(e.Raw)+"`")
		}
		add("One of %s", strings.Join(values, ", "))
	}
	if s.Default != nil {
		add("Default `%s`", s.Default.Raw)
	}
	if s.Pattern != "" {
		add("Pattern `%s`", s.Pattern)
	}
	for _, limit := range []struct {
		word  string
		value *int64
	}{{"At least %d characters", s.MinLength}, {"At most %d characters", s.MaxLength}, {"At least %d entries",
		s.MinItems}, {"At most %d entries", s.MaxItems}, {"At most %d entries", s.MaxProperties}} {
		if limit.value != nil {
			add(limit.word, *limit.value)
		}
	}
	for _, limit := range []struct {
		word  string
		value *float64
	}{{"At least %s", s.Minimum}, {"At most %s", s.Maximum}} {
		if limit.value != nil {
			b, _ := json.Marshal(*limit.value) // a number of a schema is one of JSON
			add(limit.word, b)
		}
	}
	for _, v := range s.XValidations {
		add("Rule: %s", cmp.Or(v.Message, "`"+v.Rule+"`"))
	}
	return rules
}
