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

// render executes the template. If the result has the key values, and that is a string, then that is
// the document; otherwise the result is.
func (v *Values) render(c *chance) (values map[string]any, missing bool, err *Error) {
	c.file = v.File
	t, parseErr := template.New(v.File).Funcs(valueFuncs(c)).Parse(string(v.Text))
	if parseErr != nil {
		return nil, false, inTemplate(parseErr, v.File)
	}
	out := &bounded{most: maxValues}
	if err := t.Execute(out, v.Data); err != nil {
		return nil, false, inTemplate(err, v.File)
	}
	m, parseErr := valuesOf(v.File, out.Bytes())
	if parseErr != nil {
		// The line is one of the result, not of the template.
		return nil, false, &Error{Path: v.File, Reason: clip(fmt.Sprintf("what the template gives is no values: %v", parseErr))}
	}
	return m, bytes.Contains(out.Bytes(), []byte("<no value>")), nil
}

func valuesOf(file string, b []byte) (map[string]any, error) {
	m, err := oneMap(file, b)
	if err != nil {
		return nil, err
	}
	if inner, ok := m["values"].(string); ok {
		return oneMap(file, []byte(inner))
	}
	return m, nil
}

// oneMap reads the one object of a file; an empty file is an empty one.
func oneMap(file string, b []byte) (map[string]any, error) {
	docs, _, err := document.ParseLoose(file, b)
	if err != nil || len(docs) == 0 {
		return map[string]any{}, err
	}
	if _, ok := docs[0].Value().(map[string]any); !ok || len(docs) > 1 {
		return nil, &document.Error{File: file, Line: docs[0].Line(), Reason: "there must be one object with values"}
	}
	return loader.LoadValues(bytes.NewReader(b)) // with the types that the chart's own values have
}

// valueFuncs are those of the old operator, less what tells about the computer.
func valueFuncs(c *chance) template.FuncMap {
	f := sprig.TxtFuncMap()
	for name, fn := range hermetic(c) {
		if _, ok := f[name]; ok {
			f[name] = fn
		}
	}
	for _, name := range absent {
		delete(f, name)
	}
	return f
}

// bounded is a buffer that refuses to grow beyond a limit.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("it writes more than %d bytes", b.most)
	}
	return b.Buffer.Write(p)
}
