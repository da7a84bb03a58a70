package plane

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// clusterStopTimeout is how long a local cluster may take to stop; its processes stop one after another.
const clusterStopTimeout = 30 * time.Second

// NewDownCommand is polder down: it stops the plane of the data directory, and keeps all data.
func NewDownCommand(g *connect.Globals) *cobra.Command {
	var timeout time.Duration
	var clusters bool
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the management plane; all data stays",
		Long: `down stops polderd; all data stays. Local clusters keep running without it, unless --clusters is given:
then they are stopped too, also if polderd did not run. polder up starts everything again.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			ran, err := p.Down(c.Context(), timeout)
			if err != nil {
				return err
			}
			running, unlisted := p.RunningClusters()
			if err := printStopped(c.OutOrStdout(), p.Dir(), ran, clusters && len(running) > 0); err != nil {
				return err
			}
			if len(running) == 0 {
				return unlisted
			}
			if clusters {
				fmt.Fprintf(c.ErrOrStderr(), "Stopping %s …\n", describeClusterCount(len(running)))
				return stopClusters(c.Context(), c.OutOrStdout(), running)
			}
			return printRunning(g, c.OutOrStdout(), len(running))
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait for polderd")
	c.Flags().BoolVar(&clusters, "clusters", false,
		fmt.Sprintf("stop local clusters too, each within %s", clusterStopTimeout))
	return c
}

// printStopped says what happened to the plane; more means that there are local clusters to stop.
func printStopped(w io.Writer, dir string, ran, more bool) error {
	text := "Nothing to stop: no polderd runs on %s.\n"
	switch {
	case ran:
		text = "Stopped. All data is kept in %s; polder up starts it again.\n"
	case more:
		text = "No polderd runs on %s.\n"
	}
	_, err := fmt.Fprintf(w, text, dir)
	return err
}

// printRunning says that local clusters outlive the plane, which surprises people.
func printRunning(g *connect.Globals, w io.Writer, n int) error {
	text := "%s keep running; stop them too with: %s\n"
	if n == 1 {
		text = "%s keeps running; stop it too with: %s\n"
	}
	_, err := fmt.Fprintf(w, text, describeClusterCount(n), g.Hint("down --clusters"))
	return err
}

// stopClusters says which have stopped, also if others have not.
func stopClusters(ctx context.Context, w io.Writer, running lifecycle.RunningClusters) error {
	stopped, err := running.Stop(ctx, clusterStopTimeout)
	if len(stopped) == 0 {
		return err
	}
	var names []string
	for _, c := range stopped {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	if _, writeErr := fmt.Fprintf(w, "Stopped %s: %s.\n", describeClusterCount(len(stopped)),
		strings.Join(names, ", ")); err == nil {
		err = writeErr
	}
	return err
}

// describeClusterCount counts in words that fit.
func describeClusterCount(n int) string {
	if n == 1 {
		return "1 local cluster"
	}
	return fmt.Sprintf("%d local clusters", n)
}
