package machine

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// failOptions is one call of polder machine fail.
type failOptions struct {
	how string
	yes bool
}

// newFailCommand is polder machine fail.
func newFailCommand(g *connect.Globals) *cobra.Command {
	o := &failOptions{}
	c := &cobra.Command{
		Use:   "fail NAME",
		Short: "Make a machine fail, to see what becomes of its cluster",
		Long: `fail makes a machine fail, so that authors of stacks see whether health checks and add-ons do what they
should:

  --how stop       all its processes hang; --how continue lets them go on
  --how kill       all its processes end at once, and are started again
  --how partition  it is cut off from the network, while its processes run: no heartbeat of its node, no request to
                   its API server, no word between its etcd and the others; --how continue connects it again
  --how disk       all its files are gone, and do not come back; it needs --yes

polder machine off pulls the plug.`,
		Args:              nameArgs(0),
		ValidArgsFunction: completeNames(g, func(m report) bool { return !m.Off }),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if err := failMachine(c.Context(), g, args[0], hostapi.Failure(o.how)); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), o.describe(g, args[0]))
			return err
		},
	}
	c.Flags().StringVar(&o.how, "how", "", "stop, kill, partition or disk; continue ends stop and partition")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --how disk: the files may be lost")
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("how", cobra.FixedCompletions(
		[]string{"stop", "kill", "partition", "disk", "continue"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *failOptions) check() error {
	switch hostapi.Failure(o.how) {
	case "":
		return exit.Errorf(exit.Usage, "say how it shall fail, with --how stop, kill, partition or disk")
	case hostapi.FailDisk:
		if !o.yes {
			return exit.Errorf(exit.Usage, "the files of a machine do not come back; say --yes if you mean it")
		}
	case hostapi.FailKill, hostapi.FailStop, hostapi.FailPartition, hostapi.FailContinue:
	default:
		return exit.Errorf(exit.Usage, "machines do not fail by %q; choose stop, kill, partition, disk or continue", o.how)
	}
	return nil
}

// describe says what was done, and what comes next.
func (o *failOptions) describe(g *connect.Globals, name string) string {
	switch hostapi.Failure(o.how) {
	case hostapi.FailStop:
		return fmt.Sprintf("All processes of machine %s hang; let them go on with: %s", name,
			g.Hint("machine fail "+name+" --how continue"))
	case hostapi.FailContinue:
		return fmt.Sprintf("Machine %s goes on.", name)
	case hostapi.FailPartition:
		return fmt.Sprintf("Machine %s is cut off from the network; connect it again with: %s", name,
			g.Hint("machine fail "+name+" --how continue"))
	case hostapi.FailDisk:
		return fmt.Sprintf("All files of machine %s are gone; see what becomes of its cluster with: %s", name,
			g.Hint("describe CLUSTER"))
	}
	return fmt.Sprintf("All processes of machine %s were killed; see how they start with: %s", name,
		g.Hint("machine list"))
}

func failMachine(ctx context.Context, g *connect.Globals, name string, how hostapi.Failure) error {
	all, err := readMachines(ctx, g)
	if err != nil {
		return err
	}
	m, err := all.find(g, name)
	if err != nil {
		return err
	}
	if m.State == stateHostDown || m.State == stateHostSilent {
		return exit.Errorf(exit.Failure, "machine %s cannot be made to fail, because its cluster's host must do that: %s",
			m.Name, m.Host.Problem)
	}
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	if err := hostapi.NewClient(hostapi.Dir(m.Host.Dir)).FailMachine(ctx, m.Name, how); err != nil {
		return fmt.Errorf("failing machine %s: %w", m.Name, err)
	}
	return nil
}
