// Package machine has polder machine: the machines of local clusters.
package machine

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// NewCommand is polder machine. It works on local clusters, also while polderd is down.
func NewCommand(g *connect.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "machine",
		Short: "Look at the machines of local clusters, read their logs, pull their plugs",
		Long: `machine works with the machines of local clusters, which are processes on this computer. It asks
each cluster's host, a process of its own, so it also works while polderd is down.`,
		Args:                       checkSubcommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(newListCommand(g), newDescribeCommand(g), newLogsCommand(g), newOffCommand(g), newOnCommand(g),
		newFailCommand(g))
	return c
}

// checkSubcommand refuses what is none of the command's subcommands.
func checkSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		hint = "; did you mean " + s[0] + "?"
	}
	return exit.Errorf(exit.Usage, "%s has no command %q%s; see: %s --help", c.CommandPath(), args[0], hint,
		c.CommandPath())
}

// nameArgs wants a machine's name and at most so many arguments after it.
func nameArgs(further int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return exit.Errorf(exit.Usage, "%s needs the name of a machine; polder machine list shows all", c.CommandPath())
		case len(args) > 1+further:
			return exit.Errorf(exit.Usage, "%s takes no argument %q; see: %s --help", c.CommandPath(), args[1+further],
				c.CommandPath())
		}
		return nil
	}
}

// report is what is printed of a machine.
type report struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	State     state  `json:"state"`
	// what a machine that does not run waits for or suffers from
	Detail string                  `json:"detail,omitempty"`
	Host   localcluster.HostReport `json:"host"`
	hostapi.MachineStatus
}

// reports are all machines of a data directory, ordered by namespace, cluster and name.
type reports []report

// readMachines asks all hosts.
func readMachines(ctx context.Context, g *connect.Globals) (reports, error) {
	clusters, err := localcluster.Read(ctx, g)
	if err != nil {
		return nil, err
	}
	return reportMachines(clusters, g.Now()), nil
}

// reportMachines has the machines of hosts that do not answer too, from their directories.
func reportMachines(all localcluster.List, now time.Time) reports {
	these := reports{}
	for _, l := range all {
		for _, m := range l.Status.Machines {
			r := report{
				Namespace: l.Status.Cluster.Namespace, Cluster: l.Status.Cluster.Name, Host: localcluster.ReportHost(l),
				MachineStatus: m,
			}
			r.State, r.Detail = evaluateState(l, m, now)
			these = append(these, r)
		}
	}
	return these
}

// role is control-plane, as in the labels of nodes, or worker.
func (m report) role() string {
	if m.ControlPlane {
		return "control-plane"
	}
	return "worker"
}
