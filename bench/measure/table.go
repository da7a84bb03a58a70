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

// Row is one figure. Details stand at the end, since they can be long.
type Row struct{ What, Measured, Target, Ratio, Details string }

// Table is what is printed at the end.
type Table struct{ rows []Row }

// AddRow adds any figure.
func (t *Table) AddRow(r Row) {
	t.rows = append(t.rows, r)
	Logf("%s: %s %s", r.What, r.Measured, r.Details)
}

// Add adds a figure without a target.
func (t *Table) Add(what, measured, more string) {
	t.AddRow(Row{What: what, Measured: measured, Details: more})
}

// AddDuration adds a time, and its ratio to the longest that is wanted.
func (t *Table) AddDuration(what string, took, aim time.Duration, more string) {
	t.AddRow(Row{what, FormatSeconds(took), FormatSeconds(aim), fmt.Sprintf("%.2f", took.Seconds()/aim.Seconds()), more})
}

// AddExpectNone adds a count of what should not be there at all.
func (t *Table) AddExpectNone(what string, found int, which []string) {
	t.AddRow(Row{What: what, Measured: strconv.Itoa(found), Target: "0", Details: JoinFew(which)})
}

// Print prints all rows.
func (t *Table) Print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "WHAT\tMEASURED\tAIM\tRATIO\tMORE")
	for _, r := range t.rows {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.What, r.Measured, r.Target, r.Ratio, r.Details)
	}
	return out.Flush()
}

// FormatSeconds formats a time for people.
func FormatSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// FormatPerItem formats the time for each of n.
func FormatPerItem(d time.Duration, n int) string {
	return fmt.Sprintf("%.0f ms each", d.Seconds()*1000/float64(n))
}

// JoinFew names at most five, and how many more there are.
func JoinFew(all []string) string {
	const most = 5
	s := slices.Sorted(slices.Values(all))
	if len(s) > most {
		return strings.Join(s[:most], ", ") + fmt.Sprintf(" and %d more", len(s)-most)
	}
	return strings.Join(s, ", ")
}

// Median is the time in the middle, the upper one if there are two.
func Median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// FormatRange formats the shortest and the longest time.
func FormatRange(d []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f s", slices.Min(d).Seconds(), slices.Max(d).Seconds())
}

// Logf prints progress for people at a terminal.
func Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
