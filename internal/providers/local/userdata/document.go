package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Reading nodes rather than values keeps the lines for messages, and does not expand aliases,
// with which a small document can become gigabytes.
type node = yaml.Node

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	value *node
}

// parseDocument returns the modules of the one cloud-config document in b. It may be empty.
func parseDocument(b []byte) ([]pair, error) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, yamlError(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document begins; cloud-config is only one", more.Line)
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	root := doc.Content[0]
	if isNull(root) {
		return nil, nil
	}
	modules, err := mappingPairs(root)
	if err != nil {
		return nil, fmt.Errorf("line %d: cloud-config %w", root.Line, err)
	}
	return modules, nil
}

func yamlError(err error) error {
	return fmt.Errorf("broken YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// mappingPairs returns the pairs of n, each key once.
func mappingPairs(n *node) ([]pair, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("is %s, not a mapping", describeKind(n))
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("has %s as a key in line %d", describeKind(key), key.Line)
		}
		if first := lines[key.Value]; first != 0 {
			return nil, fmt.Errorf("has the key %s twice, in lines %d and %d", shorten(key.Value), first, key.Line)
		}
		lines[key.Value] = key.Line
		pairs = append(pairs, pair{key.Value, value})
	}
	return pairs, nil
}

// sequenceItems returns the items of n; nothing at all is an empty list.
func sequenceItems(n *node) ([]*node, error) {
	if isNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("is %s, not a list", describeKind(n))
	}
	return n.Content, nil
}

// scalarText returns the text of n as it is written; nothing at all is an empty text.
func scalarText(n *node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("is %s, not a text", describeKind(n))
	}
	switch n.ShortTag() {
	case "!!null":
		return "", nil
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!binary":
		return n.Value, nil
	}
	return "", fmt.Errorf("has the tag %s, which is not supported", shorten(n.Tag))
}

func isNull(n *node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isEmpty says whether a value asks for nothing.
func isEmpty(n *node) bool {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		return len(n.Content) == 0
	case yaml.ScalarNode:
		return isNull(n) || n.Value == "" || n.ShortTag() == "!!bool" && strings.EqualFold(n.Value, "false")
	}
	return false
}

func describeKind(n *node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (which is not supported)"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "a text"
}
