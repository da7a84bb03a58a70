// Package finding is how everything that looks at stacks says what is wrong: where, what, and how to
// mend it.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what a finding means.
type Severity string

const (
	// Error would fail later: when the stack is built, installed, or used.
	Error Severity = "error"
	// Warning works, but surprises somebody.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	File     string   `json:"file"`           // in the source, with slashes
	Line     int      `json:"line,omitempty"` // 0 if it is about the whole file
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"` // a short name that does not change, for example chart-name
	What     string   `json:"what"`
	Fix      string   `json:"fix,omitempty"`
}

// String gives one line, as compilers write it.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	fmt.Fprintf(&b, ": %s: %s", f.Severity, f.What)
	if f.Fix != "" {
		b.WriteString("; " + f.Fix)
	}
	fmt.Fprintf(&b, " [%s]", f.Rule)
	return b.String()
}

// List is all findings at once.
type List []Finding

// Error makes a list an error.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, f := range l {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err is nil if nothing in the list is an error.
func (l List) Err() error {
	if errs := l.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Errors are the findings that are more than warnings.
func (l List) Errors() List {
	var out List
	for _, f := range l {
		if f.Severity == Error {
			out = append(out, f)
		}
	}
	return out
}

// Sorted gives the list by file and line, each finding once.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.What, b.What))
	})
	return slices.Compact(out)
}
