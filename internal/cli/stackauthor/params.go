package stackauthor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/params"
)

// newParamsCommand is polder stack params.
func newParamsCommand() *cobra.Command {
	var a releaseFlags
	var out string
	c := &cobra.Command{
		Use:   "params DIR|REF",
		Short: "Show what a stack contains and which parameters its clusters have",
		Long: `params shows, as a page in Markdown, what a release contains and which parameters clusters of it have; or,
with -o schema, the parameters as JSON Schema. It takes what polder stack render takes. The exit code is 1 if
something is wrong with the release; what could be read is printed all the same.`,
		Args: cmdline.Args(1, 1, "a directory or a reference"),
		RunE: func(c *cobra.Command, args []string) error {
			if out != "page" && out != "schema" {
				return exit.Errorf(exit.Usage, "output %q is not known; choose page or schema", out)
			}
			r, err := a.loadRelease(c.Context(), c.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			rendered, err := renderRelease(c.Context(), r, "default", "", false)
			if err != nil {
				return err
			}
			if rendered.class != nil {
				if err := printParams(c.OutOrStdout(), out, r, rendered); err != nil {
					return err
				}
			}
			for _, f := range rendered.found.Errors().Sorted() {
				fmt.Fprintln(c.ErrOrStderr(), f)
			}
			// What is printed may be wrong then, and a pipeline must notice.
			if rendered.found.Err() != nil {
				return output.ErrSilent
			}
			return nil
		},
	}
	a.addFlags(c)
	c.Flags().StringVarP(&out, "output", "o", "page", "`form`: page or schema")
	return c
}

func printParams(w io.Writer, form string, r *stack.Release, rendered rendering) error {
	if form == "page" {
		_, err := fmt.Fprint(w, params.Page(r, rendered.class, rendered.stages))
		return err
	}
	b, err := json.MarshalIndent(params.Schema(r, rendered.class), "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}
