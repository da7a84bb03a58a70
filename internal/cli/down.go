package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cmdline"
)

func down(g *globals) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the management plane; all data stays",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.plane()
			if err != nil {
				return err
			}
			ran, err := p.Down(c.Context(), timeout)
			if err != nil {
				return err
			}
			if !ran {
				_, err = fmt.Fprintf(c.OutOrStdout(), "Nothing to stop: no polderd runs on %s.\n", p.Dir())
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "Stopped. All data is kept in %s; polder up starts it again.\n", p.Dir())
			return err
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	return c
}
