package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// powerTimeout bounds a switch; switching off waits for the end of all processes.
const powerTimeout = 30 * time.Second

// newOffCommand is polder machine off.
func newOffCommand(g *connect.Globals) *cobra.Command {
	return &cobra.Command{
		Use:   "off NAME",
		Short: "Pull the plug of a machine: all its processes end at once",
		Long: `off ends all processes of a machine at once, as if its plug were pulled. Its files stay, and it stays
off, also when its cluster's host starts again, until polder machine on.`,
		Args:              nameArgs(0),
		ValidArgsFunction: completeNames(g, func(m report) bool { return !m.Off }),
		RunE: func(c *cobra.Command, args []string) error {
			changed, err := setPower(c.Context(), g, args[0], false)
			switch {
			case err != nil:
				return err
			case !changed:
				_, err = fmt.Fprintf(c.OutOrStdout(), "Machine %s is off already.\n", args[0])
			default:
				_, err = fmt.Fprintf(c.OutOrStdout(), "Pulled the plug of machine %s; switch it on again with: %s\n", args[0],
					g.Hint("machine on "+args[0]))
			}
			return err
		},
	}
}

// newOnCommand is polder machine on.
func newOnCommand(g *connect.Globals) *cobra.Command {
	return &cobra.Command{
		Use:               "on NAME",
		Short:             "Switch a machine on again; it starts with the files it has",
		Args:              nameArgs(0),
		ValidArgsFunction: completeNames(g, func(m report) bool { return m.Off }),
		RunE: func(c *cobra.Command, args []string) error {
			changed, err := setPower(c.Context(), g, args[0], true)
			switch {
			case err != nil:
				return err
			case !changed:
				_, err = fmt.Fprintf(c.OutOrStdout(), "Machine %s is on already.\n", args[0])
			default:
				_, err = fmt.Fprintf(c.OutOrStdout(), "Switched on machine %s; see how it starts with: %s\n", args[0],
					g.Hint("machine list"))
			}
			return err
		},
	}
}

// setPower switches the machine; changed is false if it was as wanted.
func setPower(ctx context.Context, g *connect.Globals, name string, on bool) (changed bool, err error) {
	all, err := readMachines(ctx, g)
	if err != nil {
		return false, err
	}
	m, err := all.find(g, name)
	if err != nil {
		return false, err
	}
	switch {
	case m.State == stateHostDown || m.State == stateHostSilent:
		return false, exit.Errorf(exit.Failure, "machine %s cannot be switched, because its cluster's host must do that: %s",
			m.Name, m.Host.Problem)
	case m.Off != on:
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	if err := hostapi.NewClient(hostapi.Dir(m.Host.Dir)).SetPower(ctx, m.Name, on); err != nil {
		return false, fmt.Errorf("switching machine %s: %w", m.Name, err)
	}
	return true, nil
}
