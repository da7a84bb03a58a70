package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// printReport prints how many tests passed in each group, and each that failed with the reason. Any failure is an
// error.
func printReport(out io.Writer, results []result, took time.Duration) error {
	type count struct{ passed, failed int }
	groups := map[string]*count{}
	var names []string
	failed := 0
	for _, r := range results {
		group, _, _ := strings.Cut(strings.TrimPrefix(r.name, "["), "]")
		if groups[group] == nil {
			groups[group] = &count{}
			names = append(names, group)
		}
		if r.passed {
			groups[group].passed++
			continue
		}
		groups[group].failed++
		failed++
	}
	slices.Sort(names)
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\nGROUP\tPASSED\tFAILED")
	for _, n := range names {
		fmt.Fprintf(t, "%s\t%d\t%d\n", n, groups[n].passed, groups[n].failed)
	}
	fmt.Fprintf(t, "all\t%d\t%d\n", len(results)-failed, failed)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if !r.passed {
			fmt.Fprintf(out, "\nfailed: %s\n  why: %s\n", r.name, r.reason)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed, in %s", failed, len(results), took.Round(time.Second))
	}
	fmt.Fprintf(out, "\nAll %d tests passed, in %s.\n", len(results), took.Round(time.Second))
	return nil
}
