package plane

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// NewMaintainCommand is polder maintain: it has the plane write its store afresh.
func NewMaintainCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "maintain",
		Short: "Give space that the plane's store does not need back to the disk",
		Long: fmt.Sprintf(`maintain drops the history of all objects, writes the store afresh without gaps, and lets it take
changes again if there is room. The plane does this by itself when it is needed; do it after you have deleted much.
The API answers nobody while the store is written, about ten seconds for each GB. It exits with %d if the store takes no
changes afterwards, and says why.`, exit.NotReady),
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			r, err := p.Maintain(c.Context(), timeout)
			if err != nil {
				return err
			}
			if out.IsStructured() {
				err = out.Print(c.OutOrStdout(), r)
			} else {
				err = printMaintenance(c.OutOrStdout(), r)
			}
			if err == nil && !r.Writable {
				return exit.With(exit.NotReady, output.ErrSilent)
			}
			return err
		},
	}
	out.AddFlags(c)
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for the plane; it goes on after that")
	return c
}

func printMaintenance(w io.Writer, r maintenance.Result) error {
	_, err := fmt.Fprintf(w, "The store has %s now, and had %s; it may have %s. Nobody was answered for %s.\n",
		describeSize(r.After.File), describeSize(r.Before.File), describeSize(r.Limit), r.Blocked.Round(time.Millisecond))
	if err == nil && !r.Writable {
		_, err = fmt.Fprintf(w, "It takes no changes: %s.\n", r.Problem)
	}
	return err
}
