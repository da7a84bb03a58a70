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
	c.AddCommand(newMachineListCommand(g), newMachineDescribeCommand(g), newMachineLogsCommand(g), newMachineOffCommand(g), newMachineOnCommand(g))
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
	return exit.Errorf(exit.Usage, "%s has no command %q%s; see: %s --help", c.CommandPath(), args[0], hint, c.CommandPath())
}

// machineArgs wants a machine's name and at most so many arguments after it.
func machineArgs(further int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return exit.Errorf(exit.Usage, "%s needs the name of a machine; polder machine list shows all", c.CommandPath())
		case len(args) > 1+further:
			return exit.Errorf(exit.Usage, "%s takes no argument %q; see: %s --help", c.CommandPath(), args[1+further], c.CommandPath())
		}
		return nil
	}
}

// machineReport is what is printed of a machine.
type machineReport struct {
	Namespace string                  `json:"namespace"`
	Cluster   string                  `json:"cluster"`
	State     machineState            `json:"state"`
	Detail    string                  `json:"detail,omitempty"` // what a machine that does not run waits for or suffers from
	Host      localcluster.HostReport `json:"host"`
	hostapi.MachineStatus
}

// machineReports are all machines of a data directory, ordered by namespace, cluster and name.
type machineReports []machineReport

// readMachines asks all hosts.
func readMachines(ctx context.Context, g *connect.Globals) (machineReports, error) {
	clusters, err := localcluster.Read(ctx, g)
	if err != nil {
		return nil, err
	}
	return reportMachines(clusters, time.Now()), nil
}

func reportMachines(all localcluster.List, now time.Time) machineReports {
	these := machineReports{}
	for _, l := range all {
		for _, m := range l.Status.Machines {
			r := machineReport{Namespace: l.Status.Cluster.Namespace, Cluster: l.Status.Cluster.Name, Host: localcluster.ReportHost(l), MachineStatus: m}
			r.State, r.Detail = evaluateMachine(l, m, now)
			these = append(these, r)
		}
	}
	return these
}

func (m machineReport) role() string {
	if m.ControlPlane {
		return "control-plane"
	}
	return "worker"
}
