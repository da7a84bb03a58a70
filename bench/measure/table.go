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
type Row struct{ What, Measured, Aim, Ratio, More string }

// Table is what is printed at the end.
type Table struct{ rows []Row }

// Put is for any figure.
func (t *Table) Put(r Row) {
	t.rows = append(t.rows, r)
	Say("%s: %s %s", r.What, r.Measured, r.More)
}

// Add is for a figure without an aim.
func (t *Table) Add(what, measured, more string) {
	t.Put(Row{What: what, Measured: measured, More: more})
}

// Within is for a time, and how it compares with the longest that is wanted.
func (t *Table) Within(what string, took, aim time.Duration, more string) {
	t.Put(Row{what, Seconds(took), Seconds(aim), fmt.Sprintf("%.2f", took.Seconds()/aim.Seconds()), more})
}

// None is for what should not be there at all.
func (t *Table) None(what string, found int, which []string) {
	t.Put(Row{What: what, Measured: strconv.Itoa(found), Aim: "0", More: Few(which)})
}

// Print prints all.
func (t *Table) Print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "WHAT\tMEASURED\tAIM\tRATIO\tMORE")
	for _, r := range t.rows {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.What, r.Measured, r.Aim, r.Ratio, r.More)
	}
	return out.Flush()
}

// Seconds is a time for people.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Each is a time for one of many.
func Each(d time.Duration, n int) string {
	return fmt.Sprintf("%.0f ms each", d.Seconds()*1000/float64(n))
}

// Few names some of many things.
func Few(all []string) string {
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

// Spread is the range of times.
func Spread(d []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f s", slices.Min(d).Seconds(), slices.Max(d).Seconds())
}

// Say tells people at a terminal how far it is.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
