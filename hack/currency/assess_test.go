package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patchesOf makes newer patches of v1.0, of one day each.
func patchesOf(t *testing.T, days ...string) []foundVersion {
	var list []foundVersion
	for i, d := range days {
		list = append(list, foundVersion{versionNumber{Major: 1, Patch: i + 1}, moduleRelease{Time: day(t, d), Verified: true}})
	}
	return list
}

func TestDaysBehind(t *testing.T) {
	now := day(t, "2026-11-17").Add(12 * time.Hour)
	for name, c := range map[string]struct {
		patches []string
		want    int
	}{
		"current":                             {nil, 0},
		"one patch":                           {[]string{"2026-10-17"}, 31},
		"first of several":                    {[]string{"2026-08-20", "2026-11-16"}, 89},
		"lower number released later":         {[]string{"2026-11-10", "2026-11-01"}, 16},
		"released today":                      {[]string{"2026-11-17"}, 0},
		"released tomorrow by another clock":  {[]string{"2026-11-18"}, 0},
		"not counted by the number of newest": {[]string{"2026-11-15", "2026-11-16", "2026-11-17"}, 2},
	} {
		r := &row{Newer: newerVersions{Patches: patchesOf(t, c.patches...)}}
		if got := r.daysBehind(now); got != c.want {
			t.Errorf("%s: %d days, want %d", name, got, c.want)
		}
	}
}

func TestAssessBehind(t *testing.T) {
	now := day(t, "2026-11-17")
	late, soon := patchesOf(t, "2026-10-16", "2026-11-16"), patchesOf(t, "2026-10-17")
	half := patchesOf(t, "2026-10-16", "2026-11-16")
	half[1].Verified = false
	bare := patchesOf(t, "2026-10-16")
	bare[0].Verified = false
	of := func(where string, p pin, patches []foundVersion) *row {
		p.Path, p.Version = "example.com/m", "v1.0.0"
		return &row{pin: p, Source: where, Newer: newerVersions{Patches: patches}}
	}
	offered := of("stacks/local/scs", pin{}, half)
	offered.Offered, offered.Minor = true, &minor{}
	for name, c := range map[string]struct {
		row  *row
		want []string
	}{
		"31 days are allowed": {of("go.mod", pin{}, soon), nil},
		"32 days are not":     {of("go.mod", pin{}, late), []string{"go.mod: example.com/m v1.0.0 is 32 days behind v1.0.1; run: go get example.com/m@v1.0.2."}},
		"other directory": {of("hack/tools/go.mod", pin{}, late), []string{
			"hack/tools/go.mod: example.com/m v1.0.0 is 32 days behind v1.0.1; run: cd hack/tools && go get example.com/m@v1.0.2.",
		}},
		"replaced": {of("go.mod", pin{Replaced: true}, late), []string{
			"go.mod: example.com/m v1.0.0 is 32 days behind v1.0.1; write v1.0.2 into its replace directive.",
		}},
		"newest not verified": {of("go.mod", pin{}, half), []string{"go.mod: example.com/m v1.0.0 is 32 days behind v1.0.1; run: go get example.com/m@v1.0.1."}},
		"none verified": {of("go.mod", pin{}, bare), []string{
			"go.mod: example.com/m v1.0.0 is 32 days behind v1.0.1; go could not verify it, and go mod download example.com/m@v1.0.1 says why.",
		}},
		"offered": {offered, []string{"stacks/local/scs offers Kubernetes v1.0.0, 32 days behind v1.0.1; write v1.0.2 into its stack.yaml."}},
	} {
		other := &row{Offered: true, Minor: &minor{}, Number: versionNumber{Major: 1}}
		v := assessVersions([]section{{Rows: []*row{c.row, other}}}, supportTable{Checked: date{now}}, now)
		if diff := cmp.Diff(assessment{Findings: c.want}, v); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAssessSupport(t *testing.T) {
	now := day(t, "2026-11-17")
	for name, c := range map[string]struct {
		row  row
		want assessment
	}{
		"supported": {row{Offered: true, Minor: &minor{End: date{now}}}, assessment{}},
		"ended": {row{Offered: true, Minor: &minor{End: date{day(t, "2026-11-16")}}},
			assessment{Findings: []string{"a/b offers Kubernetes v1.34.9, whose support ended on 2026-11-16; remove it from its stack.yaml."}}},
		"ended for a module": {row{Minor: &minor{End: date{day(t, "2026-11-16")}}}, assessment{}},
		"not in the table": {row{Offered: true},
			assessment{Warnings: []string{supportFile + " does not know Kubernetes 1.34, which a/b offers; add it."}}},
	} {
		c.row.Source, c.row.Version, c.row.Number = "a/b", "v1.34.9", versionNumber{Major: 1, Minor: 34, Patch: 9}
		var v assessment
		v.assessSupport([]section{{Rows: []*row{&c.row}}}, now)
		if diff := cmp.Diff(c.want, v); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAssessAgeOfTable(t *testing.T) {
	now := day(t, "2026-11-17")
	rows := []section{{Rows: []*row{{Offered: true, Minor: &minor{}}}}}
	if v := assessVersions(rows, supportTable{Checked: date{day(t, "2026-07-20")}}, now); v.Warnings != nil {
		t.Errorf("120 days are not long ago: %v", v.Warnings)
	}
	want := []string{supportFile + " was checked 121 days ago, on 2026-07-19; compare it with its sources and renew the date."}
	if diff := cmp.Diff(want, assessVersions(rows, supportTable{Checked: date{day(t, "2026-07-19")}}, now).Warnings); diff != "" {
		t.Error(diff)
	}
}
