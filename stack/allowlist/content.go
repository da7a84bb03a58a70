package allowlist

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxConfig bounds a file that is checked.
const maxConfig = 1 << 20

// shape is what a part of a document may be. The zero value takes anything.
type shape struct {
	fields map[string]shape                  // of an object; others are refused
	items  *shape                            // of a list
	why    map[string]string                 // of fields that are refused for a reason
	check  func(c *checker, value any) error // of anything
}

// anything is a part that names no files and no servers.
var anything = shape{}

// listOf is a list of parts that are alike.
func listOf(s shape) shape { return shape{items: &s} }

// readDocument reads the one document of a file, as Kubernetes reads its configuration.
func readDocument(b []byte) (map[string]any, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("are more than %d bytes", maxConfig)
	}
	for i, line := range strings.Split(string(b), "\n") {
		if i > 0 && strings.HasPrefix(line, "---") {
			return nil, errors.New("is more than one document")
		}
	}
	doc := map[string]any{}
	if err := yaml.UnmarshalStrict(b, &doc); err != nil {
		return nil, errors.New("is no YAML that can be read, or a field is there twice") // the reason could quote a key
	}
	return doc, nil
}

// checkDocument checks a document against a shape.
func checkDocument(kind string, s shape) func(*checker, string, []byte) error {
	return func(c *checker, file string, b []byte) error {
		doc, err := readDocument(b)
		if err != nil {
			return err
		}
		if doc["kind"] != kind {
			return fmt.Errorf("is no %s", kind)
		}
		at := *c
		at.file = file
		return at.checkShape("", doc, s)
	}
}

// checkShape checks a part of a document; where is its path for messages.
func (c *checker) checkShape(where string, value any, s shape) error {
	if s.check != nil {
		if err := s.check(c, value); err != nil {
			return fmt.Errorf("%s %w", strings.TrimPrefix(where, "."), err)
		}
	}
	if value == nil {
		return nil
	}
	if s.items != nil {
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is no list", strings.TrimPrefix(where, "."))
		}
		for i, item := range list {
			if err := c.checkShape(fmt.Sprintf("%s[%d]", where, i), item, *s.items); err != nil {
				return err
			}
		}
	}
	if s.fields == nil {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is no object", strings.TrimPrefix(where, "."))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := strings.TrimPrefix(where+"."+name, ".")
		sub, ok := s.fields[name]
		if why := s.why[name]; !ok && why != "" {
			return fmt.Errorf("%s is refused: %s", at, why)
		}
		if !ok {
			return fmt.Errorf("the field %s is not one that a local machine takes", quoteShort(at))
		}
		if err := c.checkShape(where+"."+name, object[name], sub); err != nil {
			return err
		}
	}
	return nil
}

// isText checks a field that must be a text.
func isText(check func(*checker, string) error) shape {
	return shape{check: func(c *checker, value any) error {
		if value == nil {
			value = ""
		}
		s, ok := value.(string)
		if !ok {
			return errors.New("is no text")
		}
		return check(c, s)
	}}
}

// fieldsOf is fields that take anything.
func fieldsOf(names string) map[string]shape {
	out := map[string]shape{}
	for _, n := range strings.Fields(names) {
		out[n] = anything
	}
	return out
}

// with adds fields.
func with(m map[string]shape, more map[string]shape) map[string]shape {
	out := maps.Clone(m)
	maps.Copy(out, more)
	return out
}
