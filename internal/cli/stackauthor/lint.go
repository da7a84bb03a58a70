package stackauthor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/registry"
)

// vendorFromCache are the locked dependencies that were fetched before, or lie in the stack; what is wrong
// with those is a finding.
func vendorFromCache(ctx context.Context, files archive.Tree) (stack.VendoredCharts, finding.List) {
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil, nil // lint says so
	}
	deps, err := (&dependency.Fetcher{Cache: chartCacheDir()}).Vendor(ctx, s)
	var found finding.List
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			var d *document.Error
			if errors.As(err, &d) && strings.Contains(d.Reason, "has changed since") {
				found = append(found, finding.Finding{
					File: d.File, Line: d.Line, Severity: finding.Error, Rule: "dependency", What: d.Reason,
				})
			}
		}
	}
	return deps, found
}

// lintDir lints the source or the release in a directory.
func lintDir(ctx context.Context, dir string) (finding.List, error) {
	files, err := readStack(dir)
	if err != nil {
		return nil, err
	}
	if stack.IsRelease(files) {
		r, err := registry.LoadDir(dir)
		if err != nil {
			return nil, err
		}
		return lint.RunRelease(ctx, r, lint.Options{})
	}
	deps, changed := vendorFromCache(ctx, files)
	found, err := lint.Run(ctx, files, lint.Options{VendoredCharts: deps})
	return append(changed, found...).Sorted(), err
}

// newLintCommand is polder stack lint.
func newLintCommand() *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Find everything in a stack that would fail later",
		Long: `lint reads the source of a stack and says all that is wrong with it at once: where, what, and how to mend
it. It renders every chart with its defaults, for a sample of a cluster, in each version of Kubernetes
the stack names. It needs no network. The exit code is 1 if there are errors; warnings alone are 0.

Of a release, which other tools may have built, it checks stages, class and rendered objects in the same way.`,
		Args: cmdline.Args(0, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := lintDir(c.Context(), dirArg(args))
			if err != nil {
				return err
			}
			if out.IsStructured() {
				if found == nil {
					found = finding.List{} // an empty list, not nothing
				}
				err = out.Print(c.OutOrStdout(), found)
			} else {
				for _, f := range found {
					fmt.Fprintln(c.OutOrStdout(), f)
				}
			}
			if len(found) == 0 && !out.IsStructured() {
				fmt.Fprintln(c.ErrOrStderr(), "Nothing was found.")
			}
			if err == nil && found.Err() != nil {
				err = output.ErrSilent
			}
			return err
		},
	}
	out.AddFlags(c)
	return c
}
