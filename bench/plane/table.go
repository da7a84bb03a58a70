package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// row is one line of the table. A value that was not measured is zero.
type row struct {
	measure                    string
	separate, fresh, restarted float64
	unit                       string
	aim                        aim
}

// aim is what the fresh polderd should reach: a share of the separate processes, or a number. The zero value is no aim.
type aim struct {
	ratio  float64
	atMost float64
}

func (f figures) rows(clusters int) []row {
	with := fmt.Sprintf(", %d clusters", clusters)
	idle, loaded := func(r result) sample { return r.idle }, func(r result) sample { return r.loaded }
	return slices.Concat(
		f.effort("ready", func(r result) effort { return r.ready }, aim{ratio: 0.5}),
		f.memory("", idle, aim{ratio: 0.35}),
		[]row{f.cpu("idle CPU", idle, aim{atMost: 2})},
		f.effort("all machines made"+with, func(r result) effort { return r.build }, aim{}),
		f.effort("ready"+with, func(r result) effort { return r.readyLoaded }, aim{}),
		f.memory(with, loaded, aim{atMost: 480}),
		[]row{
			f.cpu("CPU at rest"+with, loaded, aim{}),
			f.row("programs", func(r result) float64 { return megabytes(r.binaries) }, "MB", aim{}),
			{measure: "program polder", fresh: megabytes(f.cliSize), unit: "MB", aim: aim{atMost: 80}},
			{measure: "polder version, median of 10", fresh: float64(f.cliTime.Milliseconds()), unit: "ms"},
			f.row("CPU the host took meanwhile", func(r result) float64 { return r.stolen }, "%", aim{}),
		})
}

func (f figures) row(measure string, of func(result) float64, unit string, a aim) row {
	return row{measure: measure, separate: of(f.separate), fresh: of(f.fresh), restarted: of(f.restarted), unit: unit, aim: a}
}

// effort makes two rows; the aim is for the clock.
func (f figures) effort(measure string, of func(result) effort, a aim) []row {
	return []row{
		f.row(measure, func(r result) float64 { return of(r).clock.Seconds() }, "s", a),
		f.row(measure+", CPU time", func(r result) float64 { return of(r).cpu.Seconds() }, "s", aim{}),
	}
}

// memory makes the rows about memory; the aim is for RSS, the largest and the best known.
func (f figures) memory(with string, of func(result) sample, a aim) []row {
	return []row{
		f.row("RSS"+with, func(r result) float64 { return megabytes(of(r).rss) }, "MB", a),
		f.row("anonymous"+with, func(r result) float64 { return megabytes(of(r).anonymous) }, "MB", aim{}),
		f.row("PSS"+with, func(r result) float64 { return megabytes(of(r).proportional) }, "MB", aim{}),
		f.row("highest RSS so far"+with, func(r result) float64 { return megabytes(of(r).peak) }, "MB", aim{}),
	}
}

func (f figures) cpu(measure string, of func(result) sample, a aim) row {
	return f.row(measure, func(r result) float64 { return of(r).cpu }, "%", a)
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

func (r row) value(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, r.unit)
	}
	return fmt.Sprintf("%.0f %s", v, r.unit)
}

func (r row) ratio() float64 {
	if r.separate == 0 {
		return 0
	}
	return r.fresh / r.separate
}

// verdict says what is aimed at and whether it was met.
func (r row) verdict() string {
	var text string
	var met bool
	switch {
	case r.aim.ratio != 0 && r.separate != 0:
		text, met = fmt.Sprintf("<= %.2f x", r.aim.ratio), r.ratio() <= r.aim.ratio
	case r.aim.atMost != 0:
		text, met = fmt.Sprintf("<= %.0f %s", r.aim.atMost, r.unit), r.fresh <= r.aim.atMost
	default:
		return ""
	}
	if met {
		return text + "  met"
	}
	return text + "  MISSED"
}

func (f figures) print(out io.Writer, cfg config) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, err := fmt.Fprintln(w, "measure\tseparate processes\tpolderd fresh\tpolderd restarted\tratio\taim")
	for _, r := range f.rows(cfg.clusters) {
		ratio := "-"
		if n := r.ratio(); n != 0 {
			ratio = fmt.Sprintf("%.2f", n)
		}
		_, e := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.measure, r.value(r.separate), r.value(r.fresh), r.value(r.restarted), ratio, r.verdict())
		err = errors.Join(err, e)
	}
	return errors.Join(err, w.Flush())
}
