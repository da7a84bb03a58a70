package stackauthor

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
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
with -o schema, the parameters as JSON Schema. It takes what polder stack render takes.`,
		Args: cmdline.Args(1, 1, "a directory or a reference"),
		RunE: func(c *cobra.Command, args []string) error {
			if out != "page" && out != "schema" {
				return exit.Errorf(exit.Usage, "output %q is not known; choose page or schema", out)
			}
			r, err := a.loadRelease(c.Context(), c.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			class, stages, found, err := renderAll(c.Context(), r, "default", "")
			if err != nil {
				return err
			}
			for _, f := range found.Errors().Sorted() {
				fmt.Fprintln(c.ErrOrStderr(), f)
			}
			if class == nil {
				return output.ErrSilent
			}
			if out == "page" {
				_, err = fmt.Fprint(c.OutOrStdout(), params.Page(r, class, stages))
				return err
			}
			b, err := json.MarshalIndent(params.Schema(r, class), "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", b)
			return err
		},
	}
	a.addFlags(c)
	c.Flags().StringVarP(&out, "output", "o", "page", "`form`: page or schema")
	return c
}
