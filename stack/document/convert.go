package document

import (
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// converter turns YAML nodes into values, and counts them.
type converter struct {
	file     string
	nodes    int
	loose    bool // as ParseLoose reads: keys may be there twice, yes and on are true
	warnings []*Error
}

func (c *converter) errorf(n *yaml.Node, format string, args ...any) error {
	return &Error{File: c.file, Line: n.Line, Reason: fmt.Sprintf(format, args...)}
}

func (c *converter) convert(n *yaml.Node, depth int) (any, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, c.errorf(n, "there are more than %d values; aliases count as often as they are used", maxNodes)
	}
	if depth > maxDepth {
		return nil, c.errorf(n, "this lies more than %d levels deep", maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		// An alias to itself ends at the limit of depth.
		return c.convert(n.Alias, depth+1)
	case yaml.MappingNode:
		return c.convertMapping(n, depth)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			v, err := c.convert(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return c.convertScalar(n)
}

// convertMapping converts an object, whose keys must not be there twice. What "<<" brings in counts less than
// what is written here.
func (c *converter) convertMapping(n *yaml.Node, depth int) (any, error) {
	out, lines, merged := map[string]any{}, map[string]int{}, map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		val, err := c.convert(v, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Tag == "!!merge" {
			if err := c.merge(k, merged, val); err != nil {
				return nil, err
			}
			continue
		}
		name, err := c.convertKey(k)
		if err != nil {
			return nil, err
		}
		if first, ok := lines[name]; ok {
			err := &Error{
				File: c.file, Line: k.Line, Reason: fmt.Sprintf("%q is here a second time, after line %d", name, first),
			}
			if !c.loose {
				return nil, err
			}
			c.warnings = append(c.warnings, err)
		}
		lines[name], out[name] = k.Line, val
	}
	for k, v := range merged {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out, nil
}

// merge adds what "<<" names; what comes first counts.
func (c *converter) merge(at *yaml.Node, into map[string]any, v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return c.errorf(at, "<< must name an object, or a list of objects")
		}
		for k, v := range m {
			if _, ok := into[k]; !ok {
				into[k] = v
			}
		}
	}
	return nil
}

// convertKey gives a string, as JSON demands; numbers and the like are taken by their spelling.
func (c *converter) convertKey(k *yaml.Node) (string, error) {
	for k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		return "", c.errorf(k, "a key must be a string")
	}
	return k.Value, nil
}

// yaml11Bools are words that YAML 1.1 takes for truth values, and with it Kubernetes' own tools.
var yaml11Bools = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// convertScalar resolves what is not quoted as YAML 1.2 does: yes and on are strings, unless c is loose.
func (c *converter) convertScalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp":
		if b, ok := yaml11Bools[n.Value]; ok && c.loose && n.Style == 0 && n.Tag != "!str" {
			return b, nil
		}
		return n.Value, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, c.errorf(n, "%q is neither true nor false", n.Value)
		}
		return b, nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err == nil {
			return i, nil
		}
		// It does not fit into 64 bits, but may be a number in JSON.
		return c.convertFloat(n)
	case "!!float":
		return c.convertFloat(n)
	}
	return nil, c.errorf(n, "the type %s is not known here", n.ShortTag())
}

func (c *converter) convertFloat(n *yaml.Node) (any, error) {
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, c.errorf(n, "the number %.40s is too large, or none", n.Value)
	}
	return f, nil
}
