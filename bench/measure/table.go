package measure

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is one figure. What it may be made of stands at the end, since it can be long.
type Row struct{ What, Measured, Target, Ratio, Details string }

// Table is what is printed at the end.
type Table struct{ rows []Row }

// AddRow is for any figure.
func (t *Table) AddRow(r Row) {
	t.rows = append(t.rows, r)
	Logf("%s: %s %s", r.What, r.Measured, r.Details)
}

// Add is for a figure without an aim.
func (t *Table) Add(what, measured, more string) {
	t.AddRow(Row{What: what, Measured: measured, Details: more})
}

// AddDuration is for a time, and how it compares with the longest that is wanted.
func (t *Table) AddDuration(what string, took, aim time.Duration, more string) {
	t.AddRow(Row{what, FormatSeconds(took), FormatSeconds(aim), fmt.Sprintf("%.2f", took.Seconds()/aim.Seconds()), more})
}

// AddExpectNone is for what should not be there at all.
func (t *Table) AddExpectNone(what string, found int, which []string) {
	t.AddRow(Row{What: what, Measured: strconv.Itoa(found), Target: "0", Details: JoinFew(which)})
}

// Print prints all.
func (t *Table) Print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "WHAT\tMEASURED\tAIM\tRATIO\tMORE")
	for _, r := range t.rows {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.What, r.Measured, r.Target, r.Ratio, r.Details)
	}
	return out.Flush()
}

// FormatSeconds is a time for people.
func FormatSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// FormatPerItem is a time for one of many.
func FormatPerItem(d time.Duration, n int) string {
	return fmt.Sprintf("%.0f ms each", d.Seconds()*1000/float64(n))
}

// JoinFew names some of many things.
func JoinFew(all []string) string {
	const most = 5
	s := slices.Sorted(slices.Values(all))
	if len(s) > most {
		return strings.Join(s[:most], ", ") + fmt.Sprintf(" and %d more", len(s)-most)
	}
	return strings.Join(s, ", ")
}

// Median is the one in the middle.
func Median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// FormatRange is the range of times.
func FormatRange(d []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f s", slices.Min(d).Seconds(), slices.Max(d).Seconds())
}

// Logf tells people at a terminal how far it is.
func Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
