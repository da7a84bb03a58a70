package machine

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// newListCommand is polder machine list.
func newListCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	var cluster string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the machines of all local clusters, or of one",
		Long: `list shows every machine of the local clusters in the data directory. Its state is booting, with what
it is at; running; failing; off; partitioned; host down, if the cluster's host does not run; or host silent, if that
runs and does not answer. MEMORY is what the processes have for themselves alone. The nodes of workers
are simulated: no process runs for them.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			clusters, err := localcluster.Read(c.Context(), g)
			if err == nil && cluster != "" {
				clusters, err = clusters.SelectByName(cluster)
			}
			if err != nil {
				return err
			}
			all := reportMachines(clusters, g.Now())
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(c.ErrOrStderr(), "There are no machines of %s in %s.\n", describeScope(cluster), g.DataDir)
				return err
			}
			return all.printTable(c.OutOrStdout())
		},
	}
	out.AddFlags(c)
	c.Flags().StringVar(&cluster, "cluster", "", "only machines of the cluster `[NAMESPACE/]NAME`")
	_ = c.RegisterFlagCompletionFunc("cluster", completeLocalClusters(g)) // the flag exists
	return c
}

// describeScope names where was looked, since that may be the mistake.
func describeScope(cluster string) string {
	if cluster == "" {
		return "local clusters"
	}
	return "cluster " + cluster
}

// printTable prints for people.
func (all reports) printTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tCLUSTER\tMACHINE\tROLE\tVERSION\tADDRESS\tSTATE\tPROCESSES\tRESTARTS\tMEMORY")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Namespace, m.Cluster, m.Name, m.role(), cmp.Or(m.Version, "-"),
			cmp.Or(m.Address, "-"), m.stateText(), m.processColumns())
	}
	return t.Flush()
}

// processColumns are the last columns: processes, restarts and memory, where there are processes.
func (m report) processColumns() string {
	if len(m.Processes) == 0 {
		return "-\t-\t-"
	}
	ready, restarts := 0, 0
	for _, p := range m.Processes {
		restarts += p.Restarts
		if p.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d\t%d\t%s", ready, len(m.Processes), restarts,
		output.Megabytes(localcluster.MachineMemory(m.MachineStatus)))
}
