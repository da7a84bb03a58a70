// Package plane has the commands on the management plane: up, down, status, kubectl, version.
package plane

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// NewUpCommand is polder up: it starts the plane of the data directory.
func NewUpCommand(g *connect.Globals) *cobra.Command {
	var o lifecycle.UpOptions
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the management plane in the background and wait until it is ready",
		Long: `up starts polderd, which lies beside polder, in the background and returns when everything
in it is ready and the stacks that come with it are installed. If it runs already, up only says so.
Data, keys and the log are kept in the data directory. Whoever needs credentials for the source of
stacks, or trusts registries with private addresses, runs polderd serve with the flags for that.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			if o.Binary, err = lifecycle.FindPolderd(); err != nil {
				return err
			}
			if o.Stacks, err = absoluteSource(o.Stacks); err != nil {
				return err
			}
			begin := g.Now()
			elapsed := func() time.Duration { return g.Now().Sub(begin) }
			o.Progress = newProgressPrinter(c.ErrOrStderr(), elapsed)
			r, started, err := p.Up(c.Context(), o)
			if err != nil {
				return err
			}
			took := elapsed()
			if started {
				waitForShippedStacks(c, g, p, elapsed)
			}
			return printReady(c.OutOrStdout(), p, r, started, took, o)
		},
	}
	c.Flags().StringVar(&o.Listen, "listen", "",
		"`ADDRESS:PORT` of the Kubernetes API (default: as last time, at first 127.0.0.1:7443)")
	c.Flags().StringVar(&o.REST, "rest-listen", "",
		"`ADDRESS:PORT` of the REST API for customers (default: as last time, at first it is not served)")
	c.Flags().StringVar(&o.Stacks, "stack-source", "",
		"where releases of cluster stacks are, for ClusterStacks that name no source: oci://HOST/REPOSITORY or a directory (default: as last time, at first none)")
	c.Flags().DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait")
	return c
}

// absoluteSource makes the path of a directory one that polderd, which runs elsewhere, can use.
func absoluteSource(s string) (string, error) {
	if s == "" || strings.HasPrefix(s, "oci://") {
		return s, nil
	}
	if _, err := os.Stat(s); err != nil {
		return "", exit.Errorf(exit.Usage, "--stack-source: %w; name a directory with releases, or oci://HOST/REPOSITORY",
			err)
	}
	return filepath.Abs(s)
}

// newProgressPrinter prints a line for each component that becomes ready, and what is waited for.
func newProgressPrinter(w io.Writer, elapsed func() time.Duration) func(lifecycle.Report) {
	told := map[string]supervisor.State{}
	return func(r lifecycle.Report) {
		for _, c := range r.Status.Components {
			if c.State == told[c.Name] {
				continue
			}
			told[c.Name] = c.State
			switch c.State {
			case supervisor.Starting:
				fmt.Fprintf(w, "  %5.1fs  %-18s starting\n", elapsed().Seconds(), c.Name)
			case supervisor.Ready:
				fmt.Fprintf(w, "  %5.1fs  %-18s ready\n", elapsed().Seconds(), c.Name)
			}
		}
	}
}

// printReady also says which wishes a plane that ran already does not fulfil: flags count at the start.
func printReady(w io.Writer, p *lifecycle.Plane, r lifecycle.Report, started bool, took time.Duration,
	wanted lifecycle.UpOptions) error {
	state := fmt.Sprintf("Polder is ready after %.1f s", took.Seconds())
	if !started {
		state = "Polder already runs"
	}
	_, err := fmt.Fprintf(w, `%s at %s.

  export KUBECONFIG=%s
  kubectl get namespaces      (where there is no kubectl: polder kubectl get namespaces)

  polder status says how it is, polder down stops it; data and log are in %s.
`, state, r.Status.Address, p.Kubeconfig(), p.Dir())
	if err == nil && !started && wanted.Listen != "" && r.Status.Address != "https://"+wanted.Listen {
		_, err = fmt.Fprintf(w, "\nTo change the address to %s, run: polder down && polder up --listen %s\n", wanted.Listen,
			wanted.Listen)
	}
	if err == nil && r.Status.REST != "" {
		_, err = fmt.Fprintf(w, "\nThe REST API for customers is at %s.\n", r.Status.REST)
	}
	if err == nil && !started && wanted.REST != "" && r.Status.REST != "https://"+wanted.REST+"/v1" {
		_, err = fmt.Fprintf(w, "\nTo serve the REST API at %s, run: polder down && polder up --rest-listen %s\n", wanted.REST,
			wanted.REST)
	}
	if err == nil && !started && wanted.Stacks != "" && r.Status.Stacks != wanted.Stacks {
		_, err = fmt.Fprintf(w, "\nTo change the source of stacks to %s, run: polder down && polder up --stack-source %s\n",
			wanted.Stacks, wanted.Stacks)
	}
	return err
}
