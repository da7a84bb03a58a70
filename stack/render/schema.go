package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

const schemaFile = "values.schema.json"

// checkSchemas checks the values of a chart and of its dependencies against their schemas.
func checkSchemas(ch *chart.Chart, values any) *Error {
	return checkSchemasBelow(ch, values, "")
}

func checkSchemasBelow(ch *chart.Chart, values any, dir string) *Error {
	if len(ch.Schema) > 0 {
		if err := checkSchema(ch.Schema, values); err != nil {
			return &Error{Path: dir + schemaFile, Reason: truncateReason(err.Error())}
		}
	}
	table, _ := asMap(values)
	for _, d := range ch.Dependencies() {
		if v, ok := table[d.Name()]; ok && v != nil {
			if err := checkSchemasBelow(d, v, dir+"charts/"+d.Name()+"/"); err != nil {
				return err
			}
		}
	}
	return nil
}

func asMap(v any) (map[string]any, bool) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	var m map[string]any
	return m, json.Unmarshal(b, &m) == nil
}

// noLoader refuses what a schema refers to outside itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %.100q; only what is in the schema itself is read", url)
}

// CompileSchema compiles a JSON schema that must be complete in itself.
func CompileSchema(b []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const url = "schema:///" + schemaFile
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

func checkSchema(schema []byte, values any) error {
	s, err := CompileSchema(schema)
	if err != nil {
		return err
	}
	b, err := json.Marshal(values)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return errors.New("the values do not fit: " + strings.Join(Explain(invalid), "; "))
	}
	return err
}

// Explain lists what is wrong with a value, each as a sentence that begins with the path of the field.
func Explain(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		where := strings.Join(e.InstanceLocation, ".")
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		if where == "" {
			return []string{text}
		}
		return []string{where + ": " + text}
	}
	var out []string
	for _, c := range e.Causes {
		out = append(out, Explain(c)...)
	}
	return out
}
