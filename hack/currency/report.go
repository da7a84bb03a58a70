package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// emptyCell stands in cells that have nothing to show.
const emptyCell = "-"

const legend = `DAYS BEHIND counts from the first newer patch. NEXT is what the proxy says of the number after the
newest patch: unknown is no such version, refused may be one. A day with ~ is estimated.`

func writeReport(out io.Writer, sections []section, v assessment, now time.Time) {
	fmt.Fprintf(out, "Versions as of %s\n", date{now})
	for _, s := range sections {
		fmt.Fprintf(out, "\n%s\n", s.Title)
		writeTable(out, s, now)
	}
	fmt.Fprintf(out, "\n%s\n", legend)
	for _, part := range []struct {
		title     string
		sentences []string
	}{{"Coming up", v.Notices}, {"Warnings", v.Warnings}, {"To do", v.Findings}} {
		if len(part.sentences) > 0 {
			fmt.Fprintf(out, "\n%s\n  %s\n", part.title, strings.Join(part.sentences, "\n  "))
		}
	}
}

func writeTable(out io.Writer, s section, now time.Time) {
	if len(s.Rows) == 0 {
		fmt.Fprintln(out, "  no direct requirements")
		return
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	first := "MODULE"
	if s.Rows[0].Offered {
		first = "STACK"
	}
	fmt.Fprintln(w, strings.Join([]string{first, "PINNED", "NEWEST PATCH", "DAYS BEHIND", "NEWEST MINOR", "END OF SUPPORT",
		"NEXT", "NOTES"}, "\t"))
	for _, r := range s.Rows {
		fmt.Fprintln(w, strings.Join(r.cells(now), "\t"))
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(out, "  "+strings.TrimRight(line, " \n"))
	}
}

func (r *row) cells(now time.Time) []string {
	label := r.Path
	if r.Offered {
		label = r.Source
	}
	notes := strings.Join(r.notes(now), "; ")
	if !r.isSearchable() {
		version := r.Version
		if version == "" {
			version = emptyCell
		}
		return []string{label, version, emptyCell, emptyCell, emptyCell, emptyCell, emptyCell, notes}
	}
	return []string{
		label, r.Version, describeNewest(r.Newer.Patches), describeDays(r.daysBehind(now)),
		describeNewest(r.Newer.NewestMinor),
		r.Minor.describeEnd(), describeMissing(r.Newer.Next.Refused), notes,
	}
}

func describeDays(days int) string {
	if days == 0 {
		return emptyCell
	}
	return strconv.Itoa(days)
}

func describeNewest(versions []foundVersion) string {
	if len(versions) == 0 {
		return emptyCell
	}
	newest := versions[len(versions)-1]
	return fmt.Sprintf("%s (%s)", newest.versionNumber, date{newest.Time})
}

func describeMissing(refused bool) string {
	if refused {
		return "refused"
	}
	return "unknown"
}

// notes gives what does not fit into the columns.
func (r *row) notes(now time.Time) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Directory != "" {
		add("replaced by the directory %s", r.Directory)
	}
	if !r.Commit.IsZero() {
		add("pinned to a commit of %s", date{r.Commit})
	}
	for _, g := range r.Newer.Gaps {
		add("%s %s", g.versionNumber, describeMissing(g.Refused))
	}
	for _, p := range slices.Concat(r.Newer.Patches, r.Newer.NewestMinor) {
		if p.Via != "" {
			add("%s known from %s", p.versionNumber, p.Via)
		} else if !p.Verified {
			add("%s not verified", p.versionNumber)
		}
	}
	switch m := r.Minor; {
	case m == nil:
	case m.End.isPast(now):
		add("support has ended")
	case m.Maintenance.isPast(now):
		add("in maintenance mode since %s", m.Maintenance)
	}
	return notes
}
