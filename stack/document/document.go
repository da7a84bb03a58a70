// Package document reads YAML from outside: within limits, with the line of everything, and to
// values that JSON has too. What is ambiguous, such as a key that is there twice, is refused.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/polder-kaas/polder/stack/text"
)

const (
	maxDepth     = 100
	maxNodes     = 200_000 // of all documents of a file together, aliases counted as often as they are used
	maxDocuments = 1000
	maxEstimate  = 2 * maxNodes // before anything is read; see EstimateValues
)

// Error says what is wrong, and where.
type Error struct {
	File   string
	Line   int // 0 if it is not known
	Reason string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// Document is one YAML document of a file.
type Document struct {
	file  string
	root  *yaml.Node
	value any
}

// Parse reads all documents of a file; empty ones are left out.
func Parse(file string, b []byte) ([]Document, error) {
	return parse(file, b, &converter{file: file})
}

// ParseLoose takes what Kubernetes' own tools take, and as they do: of a key that is there twice, the
// last counts, which the warnings say; yes and on are true.
func ParseLoose(file string, b []byte) (docs []Document, warnings []*Error, err error) {
	c := &converter{file: file, loose: true}
	docs, err = parse(file, b, c)
	return docs, c.warnings, err
}

func parse(file string, b []byte, c *converter) ([]Document, error) {
	if !utf8.Valid(b) {
		return nil, &Error{File: file, Line: invalidUTF8Line(b), Reason: "this is not UTF-8"}
	}
	if EstimateValues(b) > maxEstimate {
		return nil, &Error{File: file, Reason: fmt.Sprintf("there are more than %d values", maxNodes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var out []Document
	for n := 0; ; n++ {
		var root yaml.Node
		err := dec.Decode(&root)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			line, why := splitYAMLError(err)
			return nil, &Error{File: file, Line: line, Reason: "this is not YAML: " + why}
		}
		if n >= maxDocuments {
			return nil, &Error{
				File: file, Line: root.Line, Reason: fmt.Sprintf("there are more than %d documents", maxDocuments),
			}
		}
		if isEmpty(&root) {
			continue
		}
		v, err := c.convert(root.Content[0], 0)
		if err != nil {
			return nil, err
		}
		out = append(out, Document{file: file, root: root.Content[0], value: v})
	}
}

// ParseOne reads a file that must have exactly one document.
func ParseOne(file string, b []byte) (Document, error) {
	all, err := Parse(file, b)
	if err != nil {
		return Document{}, err
	}
	if len(all) != 1 {
		return Document{}, &Error{
			File: file, Reason: fmt.Sprintf("there must be one YAML document, and there are %d", len(all)),
		}
	}
	return all[0], nil
}

func isEmpty(root *yaml.Node) bool {
	return len(root.Content) == 0 || root.Content[0].Tag == "!!null"
}

var yamlLinePattern = regexp.MustCompile(`^line (\d+): `)

// maxReason bounds what is shown: the library quotes what it could not read.
const maxReason = 300

// splitYAMLError splits an error of the YAML library into its line and its reason, which is kept to one line.
func splitYAMLError(err error) (line int, why string) {
	s := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	if m := yamlLinePattern.FindStringSubmatch(s); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		s = s[len(m[0]):]
		if strings.HasPrefix(s, "did not find expected") {
			line++ // errors of the parser count lines from 0
		}
	}
	return line, text.Truncate(s, maxReason)
}

func invalidUTF8Line(b []byte) int {
	line := 1
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		b = b[n:]
	}
	return line
}

// File is what was given to Parse.
func (d Document) File() string { return d.file }

// Value is the document as JSON would have it. It must not be changed.
func (d Document) Value() any { return d.value }

// Decode fills a struct by its json tags. Fields it does not have are left out.
func (d Document) Decode(into any) error {
	b, err := json.Marshal(d.value)
	if err != nil {
		return &Error{File: d.file, Reason: err.Error()}
	}
	err = json.Unmarshal(b, into)
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return &Error{
			File: d.file, Line: d.Line(strings.Split(te.Field, ".")...),
			Reason: fmt.Sprintf("%s must be %s, not %s", te.Field, jsonTypeName(te.Type.Kind().String()), te.Value),
		}
	}
	if err != nil {
		return &Error{File: d.file, Reason: err.Error()}
	}
	return nil
}

// UnknownField says which field of the document a struct does not have; empty if it has all. Who wrote it
// meant something by it.
func (d Document) UnknownField(like any) string {
	b, err := json.Marshal(d.value)
	if err != nil {
		return ""
	}
	return UnknownField(b, like)
}

// UnknownField is the first field in a JSON text that a struct does not have.
func UnknownField(b []byte, like any) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(like)
	if err == nil {
		return ""
	}
	// encoding/json has no type for this error.
	field, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return ""
	}
	return strings.Trim(field, `"`)
}

func jsonTypeName(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice", "array":
		return "a list"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	}
	return "a number"
}

// Line is where a field is: keys lead through objects, numbers through lists. If the last is
// missing, it is where the object is that should have it.
func (d Document) Line(keys ...string) int {
	n := d.root
	line := n.Line
	for _, k := range keys {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next, at := childNode(n, k)
		if next == nil {
			return line
		}
		n, line = next, at
	}
	return line
}

// Scalar is the text of a value as it was written: 1.30 is a number to YAML, and the same as 1.3. It is not there for
// lists and objects, nor for what an alias of a whole object brings in.
func (d Document) Scalar(keys ...string) (string, bool) {
	n := d.root
	for _, k := range keys {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n, _ = childNode(n, k); n == nil {
			return "", false
		}
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Value, n.Kind == yaml.ScalarNode
}

// childNode is the value of a key, and the line of that key; of a list, an item and its line.
func childNode(n *yaml.Node, key string) (*yaml.Node, int) {
	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
		return nil, 0
	}
	if n.Kind != yaml.MappingNode {
		return nil, 0
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], n.Content[i].Line
		}
	}
	return nil, 0
}
