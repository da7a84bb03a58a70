package machine

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// printProcessTable is all processes at a glance.
func printProcessTable(w io.Writer, processes []hostapi.ProcessStatus, now time.Time) {
	if len(processes) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "\nPROCESS\tSTATE\tPID\tSINCE\tMEMORY\tRESTARTS\n")
	for _, p := range processes {
		if p.PID == 0 {
			fmt.Fprintf(t, "%s\tnot running\t-\t-\t-\t%d\n", p.Name, p.Restarts)
			continue
		}
		state := "ready"
		if !p.Ready {
			state = "not ready"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%d\n", p.Name, state, p.PID, output.Age(now, p.StartedAt),
			output.Megabytes(p.Memory), p.Restarts)
	}
	_ = t.Flush() // a buffer takes everything
}

// printProcess has the last output of a process that ended, which says why, and its command as the host runs it.
func printProcess(w io.Writer, p hostapi.ProcessStatus) {
	fmt.Fprintf(w, "\nProcess %s:\n", p.Name)
	fmt.Fprintf(w, "  Log: %s\n", p.Log)
	if p.LastExit != "" {
		fmt.Fprintf(w, "  Last exit: it %s\n", p.LastExit)
	}
	printSection(w, "Last lines before that", p.Output)
	printSection(w, "Command", p.Command)
	printRewrites(w, p.Rewrites)
}

// printSection leaves out the title of an empty list.
func printSection(w io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(w, "  %s:\n", title)
	}
	for _, l := range lines {
		fmt.Fprintf(w, "    %s\n", l)
	}
}

// printRewrites writes each reason once, in the order of its first rewrite, since most
// rewrites have the same.
func printRewrites(w io.Writer, all []hostapi.Rewrite) {
	var reasons []string
	by := map[string][]hostapi.Rewrite{}
	for _, r := range all {
		if by[r.Why] == nil {
			reasons = append(reasons, r.Why)
		}
		by[r.Why] = append(by[r.Why], r)
	}
	for _, why := range reasons {
		fmt.Fprintf(w, "  Differs from the static pod, because %s:\n", why)
		for _, r := range by[why] {
			fmt.Fprintf(w, "    %s\n      -> %s\n", cmp.Or(r.From, "(nothing)"), cmp.Or(r.To, "(dropped)"))
		}
	}
}
