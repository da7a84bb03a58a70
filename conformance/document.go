package conformance

import (
	"bytes"
	_ "embed" // the document
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// published is docs/reference/openapi.json.
//
//go:embed openapi.json
var published []byte

// operation is one of the published document.
type operation struct {
	id, method, path string // the path begins with /v1
	public           bool   // it needs no token
	responses        map[string]any
}

// document is the published one, ready to judge answers by.
type document struct {
	root       map[string]any
	operations []operation // by their ids
	schemas    map[string]*jsonschema.Schema
}

const (
	problemSchema = "Problem"
	eventSchema   = "ClusterEvent"
)

func readDocument() (*document, error) {
	root, err := decodeDocument(published)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, schemas: map[string]*jsonschema.Schema{}}
	answers := map[string]any{}
	for path, methods := range object(root["paths"]) {
		for method, o := range object(methods) {
			d.operations = append(d.operations, newOperation(path, method, object(o)))
			for code, response := range object(object(o)["responses"]) {
				for kind, content := range object(object(response)["content"]) {
					answers[answerName(fmt.Sprint(object(o)["operationId"]), code, kind)] = object(content)["schema"]
				}
			}
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return d, d.compile(answers)
}

func decodeDocument(b []byte) (map[string]any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	return root, nil
}

func newOperation(path, method string, o map[string]any) operation {
	security, given := o["security"].([]any)
	return operation{
		id: fmt.Sprint(o["operationId"]), method: strings.ToUpper(method), path: path,
		public: given && len(security) == 0, responses: object(o["responses"]),
	}
}

// answerName names the schema of an answer. It has no signs that mean something in a reference.
func answerName(id, code, kind string) string {
	return strings.NewReplacer("/", "-", "+", "-").Replace(id + "_" + code + "_" + kind)
}

// compile prepares the schemas of all answers.
func (d *document) compile(answers map[string]any) error {
	const url = "openapi.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	loose, ok := allowMore(map[string]any{"components": d.root["components"], "answers": answers}).(map[string]any)
	if !ok {
		return errors.New("the published document is no object")
	}
	if err := c.AddResource(url, loose); err != nil {
		return err
	}
	names := map[string]string{}
	for _, name := range []string{problemSchema, eventSchema} {
		names[name] = "#/components/schemas/" + name
	}
	for name := range answers {
		names[name] = "#/answers/" + name
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s, err := c.Compile(url + names[name])
		if err != nil {
			return fmt.Errorf("reading the schema of %s: %w", name, err)
		}
		d.schemas[name] = s
	}
	return nil
}

// allowMore is a schema that takes fields that it does not name: /v1 grows, and clients pass over what they do not
// know.
func allowMore(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, x := range v {
			if name == "additionalProperties" && x == false {
				continue
			}
			out[name] = allowMore(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = allowMore(v[i])
		}
		return out
	}
	return v
}

// operation returns that of an id; of one that is not published it has no path.
func (d *document) operation(id string) operation {
	i := slices.IndexFunc(d.operations, func(o operation) bool { return o.id == id })
	if i < 0 {
		return operation{id: id}
	}
	return d.operations[i]
}

// validate says in a sentence what of a body is not as a schema says.
func (d *document) validate(schema string, body []byte) error {
	s := d.schemas[schema]
	if s == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return errors.New("the body is no JSON")
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	where := strings.Join(invalid.InstanceLocation, ".")
	return fmt.Errorf("%s: %s", where, invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// object is a value as an object; of all else it is an empty one.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
