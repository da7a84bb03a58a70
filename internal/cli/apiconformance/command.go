// Package apiconformance has the command of polder that judges servers of the REST API.
package apiconformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/conformance"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// options is one call of polder api-conformance.
type options struct {
	config     conformance.Config
	tokenFiles map[conformance.Role]*string
	file, ca   string
	out        output.Format
}

// NewCommand is polder api-conformance.
func NewCommand() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "api-conformance URL",
		Short: "Judge a server of the REST API",
		Long: `api-conformance asks the REST API at a URL as its customers do, and says of each promise of it whether the server keeps
it: of polderd, or of a provider's own machinery behind the same API. It makes clusters in a tenant, which are
paused, and deletes them again, also when it is interrupted; their names begin with api-conf-.

It needs a token of an editor of the tenant. Checks for which somebody else's token is needed, or a cluster that becomes
ready, are said to be not run without it. Tokens are of people or programs that do not operate the plane.

It ends with 0 if no check failed, and with 1 if one did, something that it made was not deleted, or the server could
not be asked.`,
		Example: "  polder api-conformance https://polder.example.org/v1 --tenant acme --token-file editor.token --wait-ready 20m",
		Args:    cmdline.Args(1, 1, "the URL of an API"),
		RunE: func(c *cobra.Command, args []string) error {
			o.config.URL = args[0]
			if err := o.read(); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(c.Context(), c.OutOrStdout())
		},
	}
	o.addFlags(c)
	return c
}

func (o *options) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.config.Tenant, "tenant", "", "`name` of the tenant in which clusters are made")
	o.tokenFiles = map[conformance.Role]*string{}
	for _, x := range []struct {
		role       conformance.Role
		flag, what string
	}{
		{conformance.Editor, "token-file", "`file` with a token of an editor of the tenant"},
		{conformance.Admin, "admin-token-file", "`file` with a token of an admin of the tenant"},
		{conformance.Viewer, "viewer-token-file", "`file` with a token of a viewer of the tenant"},
		{conformance.Other, "other-token-file", "`file` with a token of a member of another tenant alone"},
	} {
		o.tokenFiles[x.role] = f.String(x.flag, "", x.what)
	}
	f.StringVar(&o.file, "file", "", "`file` that clusters are made of, whose name is replaced (default: one of the first stack that is offered)")
	f.StringVar(&o.ca, "certificate-authority", "", "`file` with the authority of the server's certificate (default: those of the system)")
	f.DurationVar(&o.config.Timeout, "timeout", time.Minute, "how long a status or a deletion may take")
	f.DurationVar(&o.config.RequestTimeout, "request-timeout", 30*time.Second, "how long an answer may take")
	f.DurationVar(&o.config.WaitReady, "wait-ready", 0, "how long a cluster may take to become ready (default: no cluster has to)")
	o.out.AddFlags(c)
}

// run judges the server and prints what was found, for people as it comes.
func (o *options) run(ctx context.Context, w io.Writer) error {
	if !o.out.IsStructured() {
		o.config.Progress = func(r conformance.Result) { printResult(w, r) }
	}
	report, err := conformance.Run(ctx, o.config)
	if err != nil && (report == nil || len(report.Results) == 0) {
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "judging %s was interrupted", o.config.URL)
		}
		return err
	}
	if o.out.IsStructured() {
		if err := o.out.Print(w, report); err != nil {
			return err
		}
	} else {
		printSummary(w, report)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exit.With(exit.Interrupted, output.ErrSilent)
	case err != nil:
		return err
	case !report.Conforms():
		return exit.With(exit.Failure, output.ErrSilent)
	}
	return nil
}

// printResult prints a line for a check, and of one that failed also what was promised.
func printResult(w io.Writer, r conformance.Result) {
	fmt.Fprintf(w, "%-9s%s", r.Outcome, r.Name)
	if r.Message != "" {
		fmt.Fprintf(w, ": %s", output.Sanitize(r.Message))
	}
	fmt.Fprintln(w)
	if r.Outcome == conformance.Failed {
		fmt.Fprintf(w, "%-9spromised: %s\n", "", r.Shows)
	}
}

func printSummary(w io.Writer, r *conformance.Report) {
	for _, l := range r.Left {
		fmt.Fprintf(w, "%-9s%s\n", "left", output.Sanitize(l))
	}
	for _, d := range r.Deleting {
		fmt.Fprintf(w, "%-9s%s\n", "deleting", output.Sanitize(d))
	}
	fmt.Fprintf(w, "\n%s: %d checks passed, %d failed, %d were not run.\n", output.Sanitize(r.URL), r.Count(conformance.Passed),
		r.Count(conformance.Failed), r.Count(conformance.NotRun))
}
