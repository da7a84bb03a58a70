package main

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// What is current enough. The standard SCS-0210 gives a month for patches, and for minors of
// Kubernetes four.
const (
	maxDaysBehind   = 31
	monthsForMinor  = 4
	maxTableAgeDays = 120
)

// assessment is what there is to say about the versions, each in one sentence.
type assessment struct {
	Findings []string // something has to be upgraded
	Notices  []string // something will have to be
	Warnings []string // the report itself may be wrong
}

func assessVersions(sections []section, table supportTable, now time.Time) assessment {
	var v assessment
	for _, s := range sections {
		for _, r := range s.Rows {
			if days := r.daysBehind(now); days > maxDaysBehind {
				v.Findings = append(v.Findings, describeBehind(r, days))
			}
		}
	}
	v.assessSupport(sections, now)
	v.assessMinors(newMinors(sections, table, now), now)
	if days := daysBetween(table.Checked.Time, now); days > maxTableAgeDays {
		v.Warnings = append(v.Warnings,
			fmt.Sprintf("%s was checked %d days ago, on %s; compare it with its sources and renew the date.", supportFile, days,
				table.Checked))
	}
	return v
}

// daysBehind gives the age of the first newer patch of the same minor; 0 if there is none.
func (r *row) daysBehind(now time.Time) int {
	if len(r.Newer.Patches) == 0 {
		return 0
	}
	return daysBetween(r.firstMissedPatch().Time, now)
}

// firstMissedPatch gives the newer patch that was released first. There must be one.
func (r *row) firstMissedPatch() foundVersion {
	return slices.MinFunc(r.Newer.Patches, func(a, b foundVersion) int { return a.Time.Compare(b.Time) })
}

func daysBetween(a, b time.Time) int { return max(0, int(b.Sub(a)/(24*time.Hour))) }

func describeBehind(r *row, days int) string {
	first := r.firstMissedPatch()
	if r.Offered {
		newest := r.Newer.Patches[len(r.Newer.Patches)-1]
		return fmt.Sprintf("%s offers Kubernetes %s, %d days behind %s; write %s into its stack.yaml.", r.Source, r.Version,
			days, first.versionNumber, newest.versionNumber)
	}
	return fmt.Sprintf("%s: %s %s is %d days behind %s; %s.", r.Source, r.Path, r.Version, days, first.versionNumber,
		describeUpgrade(r))
}

// describeUpgrade says how to take the newest patch that go will accept.
func describeUpgrade(r *row) string {
	patches := r.Newer.Patches
	for _, p := range slices.Backward(patches) {
		switch dir := path.Dir(r.Source); {
		case !p.Verified:
			continue
		case r.Replaced:
			return fmt.Sprintf("write %s into its replace directive", p.versionNumber)
		case dir != ".":
			return fmt.Sprintf("run: cd %s && go get %s@%s", dir, r.Path, p.versionNumber)
		}
		return fmt.Sprintf("run: go get %s@%s", r.Path, p.versionNumber)
	}
	return fmt.Sprintf("go could not verify it, and go mod download %s@%s says why", r.Path,
		patches[len(patches)-1].versionNumber)
}

// assessSupport looks for offered versions that upstream no longer supports.
func (v *assessment) assessSupport(sections []section, now time.Time) {
	for _, s := range sections {
		for _, r := range s.Rows {
			switch {
			case !r.Offered:
			case r.Minor == nil:
				v.Warnings = append(v.Warnings,
					fmt.Sprintf("%s does not know Kubernetes %s, which %s offers; add it.", supportFile, r.Number.minorString(),
						r.Source))
			case r.Minor.End.isPast(now):
				v.Findings = append(v.Findings,
					fmt.Sprintf("%s offers Kubernetes %s, whose support ended on %s; remove it from its stack.yaml.", r.Source,
						r.Version, r.Minor.End))
			}
		}
	}
}
