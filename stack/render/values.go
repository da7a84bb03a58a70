package render

import (
	"bytes"
	"fmt"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/polder-kaas/polder/stack/document"
)

// maxValues bounds what a template of values may write.
const maxValues = 1 << 20

// render executes the template. If the result has the key values, and its value is a string, then that
// string is the document; otherwise the result is.
func (v *ValuesTemplate) render(c *randomSource) (values map[string]any, missing bool, err *Error) {
	// This template does not call enterTemplate.
	c.file = v.File
	t, parseErr := template.New(v.File).Funcs(valueFuncs(c)).Parse(string(v.Text))
	if parseErr != nil {
		return nil, false, templateError(parseErr, v.File)
	}
	out := &limitedBuffer{limit: maxValues}
	if err := t.Execute(out, v.Data); err != nil {
		return nil, false, templateError(err, v.File)
	}
	m, parseErr := parseValues(v.File, out.Bytes())
	if parseErr != nil {
		// The line is one of the result, not of the template.
		return nil, false, &Error{
			Path: v.File, Reason: truncateReason(fmt.Sprintf("what the template gives is no values: %v", parseErr)),
		}
	}
	return m, bytes.Contains(out.Bytes(), []byte("<no value>")), nil
}

func parseValues(file string, b []byte) (map[string]any, error) {
	m, err := parseSingleMap(file, b)
	if err != nil {
		return nil, err
	}
	if inner, ok := m["values"].(string); ok {
		return parseSingleMap(file, []byte(inner))
	}
	return m, nil
}

// parseSingleMap reads the one object of a file; an empty file gives an empty object.
func parseSingleMap(file string, b []byte) (map[string]any, error) {
	docs, _, err := document.ParseLoose(file, b)
	if err != nil || len(docs) == 0 {
		return map[string]any{}, err
	}
	if _, ok := docs[0].Value().(map[string]any); !ok || len(docs) > 1 {
		return nil, &document.Error{File: file, Line: docs[0].Line(), Reason: "there must be one object with values"}
	}
	return loader.LoadValues(bytes.NewReader(b)) // with the types that the chart's own values have
}

// valueFuncs are the functions of the old operator, without those that tell about the computer.
func valueFuncs(c *randomSource) template.FuncMap {
	f := sprig.TxtFuncMap()
	for name, fn := range hermeticFuncs(c) {
		if _, ok := f[name]; ok {
			f[name] = fn
		}
	}
	for _, name := range removedFuncs {
		delete(f, name)
	}
	return f
}

// limitedBuffer is a buffer that refuses to grow beyond a limit.
type limitedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, fmt.Errorf("it writes more than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}
