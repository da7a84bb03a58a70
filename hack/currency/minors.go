package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// newMinor is a minor of Kubernetes that no stack offers and that is newer than all they offer.
type newMinor struct {
	versionNumber
	Released time.Time
	InTable  bool // the day is that of the table of support, not of a tag
}

// newMinors joins what the table of support and the proxy know of new minors.
func newMinors(sections []section, table supportTable, now time.Time) []newMinor {
	var offered []versionNumber
	minors := map[string]newMinor{}
	for _, s := range sections {
		for _, r := range s.Rows {
			if !r.Offered {
				continue
			}
			offered = append(offered, r.Number)
			for _, f := range r.Newer.Minors {
				minors[f.minorString()] = newMinor{versionNumber: f.versionNumber, Released: f.Time}
			}
		}
	}
	for _, m := range tableMinors(table, now) {
		minors[m.minorString()] = m
	}
	newest := slices.MaxFunc(offered, compareMinors) // readOffers found some
	maps.DeleteFunc(minors, func(_ string, m newMinor) bool { return compareMinors(m.versionNumber, newest) <= 0 })
	return slices.SortedFunc(maps.Values(minors),
		func(a, b newMinor) int { return compareMinors(a.versionNumber, b.versionNumber) })
}

// tableMinors gives the minors of Kubernetes in the table that are released.
func tableMinors(table supportTable, now time.Time) []newMinor {
	var minors []newMinor
	for _, p := range table.Projects {
		if !p.ownsModule(kubernetesPath) {
			continue
		}
		for _, m := range p.Minors {
			n, err := parseVersionNumber("v" + m.Minor + ".0")
			if err == nil && !m.Released.After(now) {
				minors = append(minors, newMinor{versionNumber: n, Released: m.Released.Time, InTable: true})
			}
		}
	}
	return minors
}

// assessMinors says until when new minors have to be offered.
func (v *assessment) assessMinors(minors []newMinor, now time.Time) {
	for _, m := range minors {
		deadline := date{m.Released.AddDate(0, monthsForMinor, 0).Truncate(24 * time.Hour)}
		text := fmt.Sprintf("Kubernetes %s, released on %s, is offered by no stack; SCS-0210 gives time until %s",
			m.minorString(), date{m.Released}, deadline)
		if deadline.isPast(now) {
			v.Findings = append(v.Findings, text+", which is over; add it to kubernetesVersions of a stack.")
		} else {
			v.Notices = append(v.Notices, fmt.Sprintf("%s, %d days from now.", text,
				daysBetween(now.Truncate(24*time.Hour), deadline.Time)))
		}
		if !m.InTable {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s does not know Kubernetes %s; add it.", supportFile, m.minorString()))
		}
	}
}
