package main

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// supportFile is the dated table of what upstream supports.
const supportFile = "hack/currency/support.yaml"

// supportTable is the table of what upstream supports, as it was known on a day.
type supportTable struct {
	Checked  date      `json:"checked"`
	Projects []project `json:"projects"`
}

// project is an upstream project and the modules that have its numbers.
type project struct {
	Name    string   `json:"name"`
	Source  string   `json:"source"`
	Modules []string `json:"modules"` // paths; those below belong to it too
	Staging string   `json:"staging"` // below this path v0.N of a module is 1.N of the project
	Minors  []minor  `json:"minors"`
}

// minor is one minor of a project. Without an end of support, Until says what will end it.
type minor struct {
	Minor       string `json:"minor"`
	Released    date   `json:"released"`
	Maintenance date   `json:"maintenance"`
	End         date   `json:"endOfSupport"`
	Until       string `json:"until"`
	Estimated   bool   `json:"estimated"` // the end was computed by upstream's policy
}

// date is a day.
type date struct{ time.Time }

// UnmarshalJSON reads a day such as "2026-11-17".
func (d *date) UnmarshalJSON(b []byte) (err error) {
	d.Time, err = time.Parse(`"`+time.DateOnly+`"`, string(b))
	return err
}

func (d date) String() string { return d.Format(time.DateOnly) }

// isPast says whether the day is over.
func (d date) isPast(now time.Time) bool {
	return !d.IsZero() && !now.Before(d.AddDate(0, 0, 1))
}

func readSupportTable(root fs.FS) (supportTable, error) {
	var s supportTable
	b, err := fs.ReadFile(root, supportFile)
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalStrict(b, &s); err != nil {
		return s, fmt.Errorf("reading %s: %w", supportFile, err)
	}
	if s.Checked.IsZero() {
		return s, fmt.Errorf("%s does not say on which day it was checked; write checked: YYYY-MM-DD", supportFile)
	}
	return s, nil
}

// findMinor returns the minor that version n of a module is of, or nil if the table does not have it.
func (s supportTable) findMinor(path string, n versionNumber) *minor {
	for _, p := range s.Projects {
		m := n
		if p.Staging != "" && isWithin(path, p.Staging) && n.Major == 0 {
			m.Major = 1
		} else if !p.ownsModule(path) {
			continue
		}
		for i := range p.Minors {
			if p.Minors[i].Minor == m.minorString() {
				return &p.Minors[i]
			}
		}
	}
	return nil
}

func (p project) ownsModule(path string) bool {
	for _, m := range p.Modules {
		if isWithin(path, m) {
			return true
		}
	}
	return false
}

// describeEnd gives the cell of the report: a day, with a tilde if it is estimated, or what ends support.
func (m *minor) describeEnd() string {
	switch {
	case m == nil:
		return emptyCell
	case m.End.IsZero():
		return strings.TrimSpace(m.Until)
	case m.Estimated:
		return "~" + m.End.String()
	}
	return m.End.String()
}
