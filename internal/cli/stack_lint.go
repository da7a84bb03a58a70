package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cmdline"
	"github.com/polder-kaas/polder/internal/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/lint"
)

// atHand are the locked dependencies that were fetched before.
func atHand(ctx context.Context, files archive.Tree) stack.Vendored {
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil // lint says so
	}
	deps, _ := (&dependency.Fetcher{Cache: chartCache()}).Vendor(ctx, s) // lint says what is missing
	return deps
}

func stackLint() *cobra.Command {
	var out format
	c := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Find everything in a stack that would fail later",
		Long: `lint reads the source of a stack and says all that is wrong with it at once: where, what, and how to mend
it. It renders every chart with its defaults, for a sample of a cluster, in each version of Kubernetes
the stack names. It needs no network. The exit code is 1 if there are errors; warnings alone are 0.`,
		Args: cmdline.Args(0, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := readStack(dirArg(args))
			if err != nil {
				return err
			}
			if _, release := files["metadata.yaml"]; release && files["stack.yaml"] == nil {
				return exit.Errorf(exit.Usage, "%s is a release, and lint is for sources; polder stack render shows whether it is sound", dirArg(args))
			}
			found, err := lint.Run(c.Context(), files, lint.Options{Vendored: atHand(c.Context(), files)})
			if err != nil {
				return err
			}
			if out.structured() {
				if found == nil {
					found = finding.List{} // an empty list, not nothing
				}
				err = out.print(c.OutOrStdout(), found)
			} else {
				for _, f := range found {
					fmt.Fprintln(c.OutOrStdout(), f)
				}
			}
			if len(found) == 0 && !out.structured() {
				fmt.Fprintln(c.ErrOrStderr(), "Nothing was found.")
			}
			if err == nil && found.Err() != nil {
				err = errSilent
			}
			return err
		},
	}
	out.addTo(c)
	return c
}
