package main

import (
	"fmt"
	"slices"

	"github.com/polder-kaas/polder/bench/scenario"
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

// compare puts the figures of all sides beside each other.
func (b *bench) compare() []row {
	with := fmt.Sprintf(", %d clusters", b.clusters)
	idle, loaded := func(r result) sample { return r.idle }, func(r result) sample { return r.loaded }
	return slices.Concat(
		b.effort("ready", result.ready, aim{ratio: 0.5}),
		b.memory("", idle, aim{ratio: 0.35}),
		[]row{b.cpu("idle CPU", idle, aim{atMost: 2})},
		b.effort("all machines made"+with, func(r result) effort { return r.build }, aim{}),
		b.effort("ready"+with, func(r result) effort { return r.readyLoaded }, aim{}),
		b.memory(with, loaded, aim{atMost: 480}),
		[]row{
			b.cpu("CPU at rest"+with, loaded, aim{}),
			b.row("programs", func(r result) float64 { return megabytes(r.binaries) }, "MB", aim{}),
			{measure: "program polder", fresh: megabytes(b.cliSize), unit: "MB", aim: aim{atMost: 80}},
			{measure: "polder version, median of 10", fresh: float64(b.cliTime.Milliseconds()), unit: "ms"},
			b.row("CPU the host took meanwhile", func(r result) float64 { return r.host.stolenShare() }, "%", aim{}),
		})
}

func (b *bench) row(measure string, of func(result) float64, unit string, a aim) row {
	return row{
		measure: measure, separate: of(b.separate), fresh: of(b.fresh), restarted: of(b.restarted), unit: unit, aim: a,
	}
}

// effort makes two rows; the aim is for the clock.
func (b *bench) effort(measure string, of func(result) effort, a aim) []row {
	return []row{
		b.row(measure, func(r result) float64 { return of(r).clock.Seconds() }, "s", a),
		b.row(measure+", CPU time", func(r result) float64 { return of(r).cpu.Seconds() }, "s", aim{}),
	}
}

// memory makes the rows about memory; the aim is for RSS, the largest and the best known.
func (b *bench) memory(with string, of func(result) sample, a aim) []row {
	return []row{
		b.row("RSS"+with, func(r result) float64 { return megabytes(of(r).rss) }, "MB", a),
		b.row("anonymous"+with, func(r result) float64 { return megabytes(of(r).anonymous) }, "MB", aim{}),
		b.row("PSS"+with, func(r result) float64 { return megabytes(of(r).proportional) }, "MB", aim{}),
		b.row("highest RSS so far"+with, func(r result) float64 { return megabytes(of(r).peak) }, "MB", aim{}),
	}
}

func (b *bench) cpu(measure string, of func(result) sample, a aim) row {
	return b.row(measure, func(r result) float64 { return of(r).cpu }, "%", a)
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

// verdict says what is aimed at and whether it was met, if that is known.
func (r row) verdict() string {
	if r.fresh == 0 {
		return ""
	}
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

// rows are those of the table.
func (b *bench) rows() (rows scenario.Rows) {
	for _, r := range b.compare() {
		ratio := "-"
		if n := r.ratio(); n != 0 {
			ratio = fmt.Sprintf("%.2f", n)
		}
		measured := []string{r.value(r.separate), r.value(r.fresh), r.value(r.restarted), ratio}
		rows = append(rows, scenario.Row{What: r.measure, Measured: measured, Aim: r.verdict()})
	}
	return rows
}
