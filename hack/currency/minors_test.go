package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAssessMinors(t *testing.T) {
	inTable := func(minor, released string) minorOf { return minorOf{minor, released} }
	const unknown = supportFile + " does not know Kubernetes 1.37; add it."
	for name, c := range map[string]struct {
		now, proxy string // the proxy's day of v1.37.0
		table      []minorOf
		want       assessment
	}{
		"nothing new": {now: "2026-11-17", table: []minorOf{inTable("1.36", "2026-04-22"), inTable("1.34", "2025-08-27")}},
		"in time": {now: "2026-11-17", proxy: "2026-08-25", table: []minorOf{inTable("1.37", "2026-08-26")},
			want: assessment{
				Notices: []string{"Kubernetes 1.37, released on 2026-08-26, is offered by no stack; SCS-0210 gives time until 2026-12-26, 39 days from now."},
			}},
		"last day": {now: "2026-12-26", table: []minorOf{inTable("1.37", "2026-08-26")},
			want: assessment{
				Notices: []string{"Kubernetes 1.37, released on 2026-08-26, is offered by no stack; SCS-0210 gives time until 2026-12-26, 0 days from now."},
			}},
		"over": {now: "2026-12-27", table: []minorOf{inTable("1.37", "2026-08-26")},
			want: assessment{
				Findings: []string{
					"Kubernetes 1.37, released on 2026-08-26, is offered by no stack; SCS-0210 gives time until 2026-12-26, which is over; add it to kubernetesVersions of a stack.",
				},
			}},
		"older than the newest one": {now: "2026-12-27", table: []minorOf{inTable("1.38", "2026-12-16"), inTable("1.37", "2026-08-26")},
			want: assessment{
				Findings: []string{
					"Kubernetes 1.37, released on 2026-08-26, is offered by no stack; SCS-0210 gives time until 2026-12-26, which is over; add it to kubernetesVersions of a stack.",
				},
				Notices: []string{"Kubernetes 1.38, released on 2026-12-16, is offered by no stack; SCS-0210 gives time until 2027-04-16, 110 days from now."},
			}},
		"not yet released": {now: "2026-08-25", table: []minorOf{inTable("1.37", "2026-08-26")}},
		"known to the proxy only": {now: "2026-11-17", proxy: "2026-08-26",
			want: assessment{
				Notices:  []string{"Kubernetes 1.37, released on 2026-08-26, is offered by no stack; SCS-0210 gives time until 2026-12-26, 39 days from now."},
				Warnings: []string{unknown},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			offered := &row{Offered: true, Number: versionNumber{Major: 1, Minor: 36, Patch: 3}}
			if c.proxy != "" {
				offered.Newer.Minors = []foundVersion{{versionNumber{Major: 1, Minor: 37}, moduleRelease{Time: day(t, c.proxy).Add(10 * time.Hour)}}}
			}
			older := &row{Offered: true, Number: versionNumber{Major: 1, Minor: 35, Patch: 7}}
			now := day(t, c.now).Add(15 * time.Hour)
			var v assessment
			v.assessMinors(newMinors([]section{{Rows: []*row{offered, older}}}, tableOf(t, c.table), now), now)
			if diff := cmp.Diff(c.want, v); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type minorOf struct{ minor, released string }

func tableOf(t *testing.T, minors []minorOf) supportTable {
	p := project{Modules: []string{kubernetesPath}}
	for _, m := range minors {
		p.Minors = append(p.Minors, minor{Minor: m.minor, Released: date{day(t, m.released)}})
	}
	return supportTable{Projects: []project{{Modules: []string{"example.com/other"}, Minors: []minor{{Minor: "1.39"}}}, p}}
}
