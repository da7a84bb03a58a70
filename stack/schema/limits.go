package schema

import (
	"fmt"
	"regexp/syntax"
)

// Whoever makes a stack may be a stranger, and so may be whoever makes a cluster of it. These limits bound the time and
// the memory that a schema, or a value together with its schema, can take. Schemas that people write stay far below.
const (
	maxSchemaDepth = 32        // levels
	maxSchemaNodes = 5000      // schemas within a schema
	maxEnum        = 1000      // values of an enumeration
	maxRules       = 200       // CEL rules; to compile one takes about a millisecond
	maxRuleText    = 128 << 10 // bytes of CEL in all rules together
	maxPatternSize = 100_000   // instructions of a compiled pattern
	maxCheckCost   = 500_000   // steps of one check of a value; a step takes a few microseconds
)

// These weigh work that is smaller than a step.
const (
	bytesPerStep        = 32
	patternStepsPerStep = 1000
	pairsPerStep        = 16
)

var errTooDeep = fmt.Errorf("the schema is more than %d levels deep", maxSchemaDepth)

// schemaSize is what counts in a schema.
type schemaSize struct{ nodes, rules, ruleText int }

// checkSchemaSize returns what is too large in a schema.
func checkSchemaSize(s map[string]any) error {
	size := &schemaSize{}
	if err := size.add(s, 0); err != nil {
		return err
	}
	switch {
	case size.rules > maxRules:
		return fmt.Errorf("the schema has %d rules, and at most %d are allowed", size.rules, maxRules)
	case size.ruleText > maxRuleText:
		return fmt.Errorf("the rules of the schema are longer than %d KiB", maxRuleText>>10)
	}
	return nil
}

func (z *schemaSize) add(s map[string]any, depth int) (err error) {
	if depth > maxSchemaDepth {
		return errTooDeep
	}
	if z.nodes++; z.nodes > maxSchemaNodes {
		return fmt.Errorf("the schema has more than %d parts", maxSchemaNodes)
	}
	if p, ok := s["pattern"].(string); ok && patternSize(p) > maxPatternSize {
		return fmt.Errorf("the pattern %.60q takes too much memory; repeat less in it", p)
	}
	if e, _ := s["enum"].([]any); len(e) > maxEnum {
		return fmt.Errorf("an enumeration has %d values, and at most %d are allowed", len(e), maxEnum)
	}
	rules, _ := s["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		m, _ := r.(map[string]any)
		rule, _ := m["rule"].(string)
		message, _ := m["messageExpression"].(string)
		z.rules++
		z.ruleText += len(rule) + len(message)
	}
	forEachSubschema(s, func(_ string, sub map[string]any) {
		if err == nil {
			err = z.add(sub, depth+1)
		}
	})
	return err
}

// patternSize estimates the instructions of a compiled pattern without compiling it. It is 0 for what is no pattern.
func patternSize(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return programSize(re)
}

func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return min(n, 10*maxPatternSize) // there is no need to know more, and it cannot overflow
}

// costMeter counts the steps of a check before it is made.
type costMeter struct {
	left     int
	patterns map[string]int // sizes
}

// isAffordable says that a value can be checked against its schema, and defaults be filled in, within the limits.
func isAffordable(s map[string]any, values ...any) bool {
	m := &costMeter{left: maxCheckCost, patterns: map[string]int{}}
	for _, v := range values {
		m.visit(s, v, 0)
	}
	return m.left > 0
}

// visit counts the steps for one value. Errors repeat the path of a value, so its length counts too.
func (m *costMeter) visit(s map[string]any, value any, pathLength int) {
	enum, _ := s["enum"].([]any)
	required, _ := s["required"].([]any)
	m.left -= 1 + (pathLength+textLength(enum))/bytesPerStep + len(enum) + len(required)
	if m.left <= 0 {
		return
	}
	switch v := value.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok {
			m.left -= m.patternSize(p) * len(v) / patternStepsPerStep
		}
	case []any:
		m.visitItems(s, v, pathLength)
	case map[string]any:
		m.visitFields(s, v, pathLength)
	}
	if not, ok := s["not"].(map[string]any); ok {
		m.visit(not, value, pathLength)
	}
	for _, k := range subschemaLists {
		list, _ := s[k].([]any)
		for _, sub := range list {
			if sub, ok := sub.(map[string]any); ok && m.left > 0 {
				m.visit(sub, value, pathLength)
			}
		}
	}
}

func (m *costMeter) visitItems(s map[string]any, items []any, pathLength int) {
	if s["uniqueItems"] == true {
		m.left -= len(items) * len(items) / pairsPerStep
	}
	sub, _ := s["items"].(map[string]any)
	for i := 0; i < len(items) && m.left > 0; i++ {
		v := items[i]
		if def, ok := sub["default"]; ok && v == nil {
			v = def
		}
		m.visit(sub, v, pathLength+4)
	}
}

func (m *costMeter) visitFields(s, fields map[string]any, pathLength int) {
	props, _ := s["properties"].(map[string]any)
	others, _ := s["additionalProperties"].(map[string]any)
	m.left -= len(props)
	for name, sub := range props {
		sub, _ := sub.(map[string]any)
		v := fields[name]
		if def, ok := sub["default"]; ok && v == nil {
			v = def
			m.left -= textLength([]any{def}) / bytesPerStep
		}
		if m.left > 0 && v != nil {
			m.visit(sub, v, pathLength+len(name))
		}
	}
	for name, v := range fields {
		if _, known := props[name]; !known && m.left > 0 {
			m.visit(others, v, pathLength+len(name))
		}
	}
}

// patternSize is patternSize, parsed once.
func (m *costMeter) patternSize(p string) int {
	n, ok := m.patterns[p]
	if !ok {
		n = patternSize(p)
		m.patterns[p] = n
	}
	return n
}

// textLength returns the length of all texts in values.
func textLength(values []any) int {
	n := 0
	for _, v := range values {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []any:
			n += len(v) + textLength(v)
		case map[string]any:
			for k, e := range v {
				n += len(k) + textLength([]any{e})
			}
		}
	}
	return n
}
