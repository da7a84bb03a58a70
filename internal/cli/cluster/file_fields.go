package cluster

import (
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/suggest"
)

// describeNodeKind is what a part of a file is, in a word.
func describeNodeKind(n *yamlv3.Node) string {
	switch n.Kind {
	case yamlv3.MappingNode:
		return "map"
	case yamlv3.SequenceNode:
		return "list"
	}
	return "single value"
}

// jsonFieldsOf are the names that a struct has in files, also those of structs that are part of it.
func jsonFieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			for k, v := range jsonFieldsOf(f.Type) {
				fields[k] = v
			}
		case name != "":
			fields[name] = f.Type
		}
	}
	return fields
}

// suggestField is which field may have been meant.
func suggestField(name string, known map[string]reflect.Type) string {
	var similar []string
	for k := range known {
		if strings.EqualFold(k, name) || suggest.Distance(strings.ToLower(name), strings.ToLower(k)) <= 2 {
			similar = append(similar, k)
		}
	}
	if len(similar) == 0 {
		return ""
	}
	slices.Sort(similar)
	return "; did you mean " + output.JoinOr(similar) + "?"
}
