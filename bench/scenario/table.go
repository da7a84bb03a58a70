package scenario

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is one line of the table. A row without Measured is a sentence, which has no columns.
type Row struct {
	What             string
	Measured         []string // as many as the table has columns for it
	Aim, Ratio, More string   // More stands at the end, since it can be long
}

// Rows is what a scene has measured. What is added is shown at once, as progress.
type Rows []Row

// AddRow adds any row.
func (r *Rows) AddRow(row Row) {
	*r = append(*r, row)
	if len(row.Measured) == 0 {
		Logf("%s", strings.TrimSpace(row.What))
		return
	}
	Logf("%s: %s %s", row.What, strings.Join(row.Measured, ", "), row.More)
}

// Add adds a figure without an aim.
func (r *Rows) Add(what, measured, more string) {
	r.AddRow(Row{What: what, Measured: []string{measured}, More: more})
}

// AddWithAim adds a figure and what it should be; aim is empty if that is not known.
func (r *Rows) AddWithAim(what, aim, format string, args ...any) {
	r.AddRow(Row{What: what, Measured: []string{fmt.Sprintf(format, args...)}, Aim: aim})
}

// AddDuration adds a time, and its ratio to the longest that is wanted.
func (r *Rows) AddDuration(what string, took, aim time.Duration, more string) {
	ratio := fmt.Sprintf("%.2f", took.Seconds()/aim.Seconds())
	r.AddRow(Row{What: what, Measured: []string{FormatSeconds(took)}, Aim: FormatSeconds(aim), Ratio: ratio, More: more})
}

// AddExpectNone adds a count of what should not be there at all.
func (r *Rows) AddExpectNone(what string, found int, which []string) {
	r.AddRow(Row{What: what, Measured: []string{strconv.Itoa(found)}, Aim: "0", More: JoinFew(which)})
}

// AddSentence adds what does not fit into columns.
func (r *Rows) AddSentence(format string, args ...any) {
	r.AddRow(Row{What: fmt.Sprintf(format, args...)})
}

// print prints the rows, or nothing at all if nothing was measured.
func (r *Rows) print(w io.Writer, columns []string) error {
	if len(*r) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, strings.Join(columns, "\t"))
	for _, row := range *r {
		fmt.Fprintln(out, strings.Join(row.cells(len(columns)), "\t"))
	}
	return out.Flush()
}

// cells returns so many of a row as the table has columns.
func (r Row) cells(columns int) []string {
	if len(r.Measured) == 0 {
		return []string{r.What}
	}
	all := append(append([]string{r.What}, r.Measured...), r.Aim, r.Ratio, r.More)
	return all[:min(columns, len(all))]
}
