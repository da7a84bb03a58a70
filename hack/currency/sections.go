package main

import (
	"fmt"
	"time"

	"golang.org/x/mod/module"
)

// row is a version that we have chosen, and what there is above it.
type row struct {
	pin
	Source  string // the go.mod file, or the directory of the stack
	Offered bool   // by a stack
	Number  versionNumber
	Commit  time.Time // the version is that of a commit; such a row is not searched
	Newer   newerVersions
	Minor   *minor // nil if the table of support does not have it
}

// section is a part of the report: a go.mod file, or all stacks.
type section struct {
	Title string
	Rows  []*row
}

// readSections reads what we have chosen.
func readSections(c config, table supportTable) ([]section, error) {
	var sections []section
	for _, name := range c.ModFiles {
		pins, err := readPins(c.Root, name)
		if err != nil {
			return nil, err
		}
		s := section{Title: name}
		for _, p := range pins {
			s.Rows = append(s.Rows, &row{pin: p, Source: name})
		}
		sections = append(sections, s)
	}
	offers, err := readOffers(c.Root)
	if err != nil {
		return nil, err
	}
	s := section{Title: "Kubernetes offered by stacks"}
	for _, o := range offers {
		s.Rows = append(s.Rows, &row{pin: pin{Path: kubernetesPath, Version: o.Version}, Source: o.Stack, Offered: true})
	}
	sections = append(sections, s)
	for _, s := range sections {
		for _, r := range s.Rows {
			if err := r.parseVersion(table); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", r.Source, r.Path, err)
			}
		}
	}
	return sections, nil
}

// parseVersion parses the version of a row and finds its minor in the table of support.
func (r *row) parseVersion(table supportTable) (err error) {
	if r.Directory != "" {
		return nil
	}
	if module.IsPseudoVersion(r.Version) {
		r.Commit, err = module.PseudoVersionTime(r.Version)
		return err
	}
	if r.Number, err = parseVersionNumber(r.Version); err != nil {
		return err
	}
	r.Minor = table.findMinor(r.Path, r.Number)
	return nil
}

// isSearchable says whether versions above this one can be named, and so looked up.
func (r *row) isSearchable() bool { return r.Directory == "" && r.Commit.IsZero() }
