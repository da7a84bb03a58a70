package lint

import (
	"bytes"
	"errors"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// Limits of one template: what it may write, and how long it may take.
const (
	maxTemplateOutput = 1 << 20
	maxTemplateTime   = 2 * time.Second
)

var errTooMuch = errors.New("the template does too much to be tried")

// boundedWriter fails once a template has written too much.
type boundedWriter struct{ bytes.Buffer }

// Write takes what has room.
func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplateOutput {
		return 0, errTooMuch
	}
	return b.Buffer.Write(p)
}

// boundedFuncs are the functions of Cluster API's templates, of which those that make much of little fail if it is too
// much: other than charts, patches are not rendered in a child with limits.
func boundedFuncs() template.FuncMap {
	const most = 10_000
	funcs := sprig.HermeticTxtFuncMap()
	limit := func(n int) error {
		if n > most || n < -most {
			return errTooMuch
		}
		return nil
	}
	until, _ := funcs["until"].(func(int) []int)
	funcs["until"] = func(n int) ([]int, error) {
		if err := limit(n); err != nil {
			return nil, err
		}
		return until(n), nil
	}
	funcs["repeat"] = func(n int, s string) (string, error) {
		if err := limit(n * len(s)); err != nil || n < 0 || n > most {
			return "", errTooMuch
		}
		return strings.Repeat(s, n), nil
	}
	for _, name := range []string{"indent", "nindent"} {
		indent, _ := funcs[name].(func(int, string) string)
		funcs[name] = func(n int, s string) (string, error) {
			if err := limit(n); err != nil || n < 0 {
				return "", errTooMuch
			}
			return indent(n, s), nil
		}
	}
	for _, name := range []string{"untilStep", "seq"} {
		funcs[name] = func(...int) (string, error) { return "", errTooMuch }
	}
	return funcs
}

// executeBounded executes a template of boundedFuncs. One of a stranger may never end: then it is given up, and goes on
// until the program that lints ends.
func executeBounded(t *template.Template, data any) ([]byte, error) {
	b := &boundedWriter{}
	ended := make(chan error, 1)
	go func() { ended <- t.Execute(b, data) }()
	select {
	case err := <-ended:
		return b.Bytes(), err
	case <-time.After(maxTemplateTime):
		return nil, errTooMuch
	}
}
