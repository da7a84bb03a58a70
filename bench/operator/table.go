package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one figure. What it may be made of stands at the end, since it can be long.
type row struct{ what, measured, aim, ratio, more string }

// table is what is printed at the end.
type table struct{ rows []row }

func (t *table) put(r row) {
	t.rows = append(t.rows, r)
	say("%s: %s %s", r.what, r.measured, r.more)
}

// add is for a figure without an aim.
func (t *table) add(what, measured, more string) {
	t.put(row{what: what, measured: measured, more: more})
}

// within is for a time, and how it compares with the longest that is wanted.
func (t *table) within(what string, took, aim time.Duration, more string) {
	t.put(row{what, seconds(took), seconds(aim), fmt.Sprintf("%.2f", took.Seconds()/aim.Seconds()), more})
}

// none is for what should not be there at all.
func (t *table) none(what string, found int, which []string) {
	t.put(row{what: what, measured: strconv.Itoa(found), aim: "0", more: few(which)})
}

func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "WHAT\tMEASURED\tAIM\tRATIO\tMORE")
	for _, r := range t.rows {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.aim, r.ratio, r.more)
	}
	return out.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// each is a time for one of many.
func each(d time.Duration, n int) string {
	return fmt.Sprintf("%.0f ms each", d.Seconds()*1000/float64(n))
}

// few names some of many things.
func few(all []string) string {
	const most = 5
	s := slices.Sorted(slices.Values(all))
	if len(s) > most {
		return strings.Join(s[:most], ", ") + fmt.Sprintf(" and %d more", len(s)-most)
	}
	return strings.Join(s, ", ")
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// spread is the range of times.
func spread(d []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f s", slices.Min(d).Seconds(), slices.Max(d).Seconds())
}
