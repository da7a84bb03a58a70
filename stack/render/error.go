package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/text"
)

func (e *Error) Error() string {
	switch {
	case e.Path == "":
		return e.Reason
	case e.Line == 0:
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// maxReason bounds what is shown: a reason may quote the template.
const maxReason = 1000

// errorf makes an error without a path and line.
func errorf(format string, args ...any) *Error {
	return &Error{Reason: truncateReason(fmt.Sprintf(format, args...))}
}

func truncateReason(s string) string {
	return text.Truncate(strings.Join(strings.Fields(s), " "), maxReason)
}

// documentError takes path and line from an error about a YAML document.
func documentError(err error) *Error {
	if d, ok := err.(*document.Error); ok { //nolint:errorlint // document's errors are never wrapped
		return &Error{Path: d.File, Line: d.Line, Reason: truncateReason(d.Reason)}
	}
	return errorf("%v", err)
}

// locationPatterns match how text/template and Helm say where something is: "(chart/templates/x.yaml:3:5): …",
// "chart/templates/x.yaml:3:5 …", "template: overwrite.yaml:3: …".
var locationPatterns = []*regexp.Regexp{
	regexp.MustCompile(`\(([^():\s]+):(\d+)(?::\d+)?\):?\s*`),
	regexp.MustCompile(`(?:^|template: )([^():\s]+):(\d+)(?::\d+)?:?\s*`),
}

// templateError finds path and line in an error of a template. chart is the name all paths begin with.
func templateError(err error, chart string) *Error {
	text := err.Error()
	for _, p := range locationPatterns {
		m := p.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		line, _ := strconv.Atoi(text[m[4]:m[5]]) // digits; 0 if there are too many
		rest := strings.TrimSpace(text[m[1]:])
		return &Error{
			Path: strings.TrimPrefix(text[m[2]:m[3]], chart+"/"), Line: line,
			Reason: truncateReason(strings.ReplaceAll(rest, chart+"/templates/", "templates/")),
		}
	}
	return errorf("%v", err)
}
