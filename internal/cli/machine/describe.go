package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// newDescribeCommand is polder machine describe.
func newDescribeCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "describe NAME",
		Short: "Say all there is to know about a machine: boot, processes, what differs from a real one",
		Long: `describe says how a machine is, how its boot went, what of its bootstrap data was not honoured, and how
the processes run that its static pods ask for: with which arguments, and which of these differ from the
static pod's and why. NAME is a machine, or NAMESPACE/NAME where several have the same name.`,
		Args:              nameArgs(0),
		ValidArgsFunction: completeNames(g, anyMachine),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := readMachines(c.Context(), g)
			if err != nil {
				return err
			}
			m, err := all.find(g, args[0])
			if err != nil {
				return err
			}
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), m)
			}
			return m.printDescription(c.OutOrStdout(), g.Now())
		},
	}
	out.AddFlags(c)
	return c
}

// printDescription writes everything about the machine for people.
func (m report) printDescription(w io.Writer, now time.Time) error {
	var b bytes.Buffer
	m.printSummary(&b, now)
	printProcessTable(&b, m.Processes, now)
	printBoot(&b, m.Boot)
	printList(&b, "Not honoured, because the machine is only processes", m.Boot.NotHonored)
	printList(&b, "Commands a real machine would have run", m.Boot.Commands)
	printList(&b, "Changed so that kubeadm accepts it", m.Boot.Notes)
	for _, p := range m.Processes {
		printProcess(&b, p)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// printSummary has the detail of a booting machine within its state, and any other as a problem.
func (m report) printSummary(w io.Writer, now time.Time) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "Machine:\t%s\n", m.Name)
	fmt.Fprintf(t, "Cluster:\t%s/%s, endpoint %s\n", m.Namespace, m.Cluster, m.Host.Endpoint)
	fmt.Fprintf(t, "State:\t%s\n", m.stateText())
	if m.State != stateBooting && m.Detail != "" {
		fmt.Fprintf(t, "Problem:\t%s\n", m.Detail)
	}
	fmt.Fprintf(t, "Role:\t%s\n", m.role())
	fmt.Fprintf(t, "Version:\t%s\n", cmp.Or(m.Version, "-"))
	fmt.Fprintf(t, "Address:\t%s\n", cmp.Or(m.Address, "-"))
	fmt.Fprintf(t, "Directory:\t%s\n", m.Dir)
	fmt.Fprintf(t, "Node:\t%s\n", m.describeNode())
	fmt.Fprintf(t, "Host:\t%s\n", describeHost(m.Host, now))
	_ = t.Flush() // a buffer takes everything
}

// describeNode says nothing about registration where nobody looks after the node.
func (m report) describeNode() string {
	switch {
	case m.State == stateHostDown || m.State == stateHostSilent || m.State == stateOff:
		return m.Node
	case m.Registered:
		return m.Node + ", registered"
	}
	return m.Node + ", not registered"
}

// describeHost is the problem alone where there is no process to tell of.
func describeHost(h localcluster.HostReport, now time.Time) string {
	if h.PID == 0 {
		return h.Problem
	}
	s := fmt.Sprintf("process %d, up %s, %s", h.PID, output.Age(now, h.StartedAt), output.Megabytes(h.Memory))
	if h.Problem != "" {
		s += "; " + h.Problem
	}
	return s
}

// printBoot has how long each step took: where a boot hangs, or is slow, is what one looks for here.
func printBoot(w io.Writer, boot hostapi.BootStatus) {
	var total time.Duration
	for _, s := range boot.Steps {
		total += s.Took
	}
	fmt.Fprintf(w, "\nBoot: %s, attempts: %d\n", bootProgress(boot, total), boot.Attempts)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, s := range boot.Steps {
		fmt.Fprintf(t, "  %s\t%s\n", s.Name, formatSeconds(s.Took))
	}
	if boot.Step != "" && !boot.Done {
		fmt.Fprintf(t, "  %s\tat work\n", boot.Step)
	}
	_ = t.Flush() // a buffer takes everything
	if boot.Problem != "" {
		fmt.Fprintf(w, "  Problem: %s\n", boot.Problem)
	}
}

// bootProgress calls a boot failed only between attempts; the host tries again by itself.
func bootProgress(boot hostapi.BootStatus, total time.Duration) string {
	switch {
	case boot.Done:
		return "done in " + formatSeconds(total)
	case boot.Problem != "" && boot.Step == "":
		return "failed, will be tried again"
	}
	return "at " + cmp.Or(boot.Step, "its beginning")
}

// formatSeconds has the same digits everywhere, so that steps can be compared.
func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// printList writes nothing if there is nothing.
func printList(w io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s:\n", title)
	}
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", l)
	}
}
