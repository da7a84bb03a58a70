// Package cmdline has what Polder's programs have in common on the command line: bad input gets one sentence that
// says what to do, and the exit code for bad input.
package cmdline

import (
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// Prepare sets up the root command of a program.
func Prepare(root *cobra.Command) {
	root.SilenceErrors = true // main prints them
	root.SilenceUsage = true
	root.SuggestionsMinimumDistance = 2
	root.Args = NoArgs
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.Errorf(exit.Usage, "%w; see: %s --help", err, c.CommandPath())
	})
}

// NoArgs refuses arguments; for an unknown command it suggests the one that may have been meant.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasParent():
		return exit.Errorf(exit.Usage, "%s takes no arguments, but got %q; see: %s --help", c.CommandPath(), args[0],
			c.CommandPath())
	}
	hint := ""
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		hint = "; did you mean " + s[0] + "?"
	}
	return exit.Errorf(exit.Usage, "%s has no command %q%s; see: %s --help", c.Name(), args[0], hint, c.Name())
}

// Args accepts between low and high arguments; names says what they are, for the message.
func Args(low, high int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= low && len(args) <= high {
			return nil
		}
		return exit.Errorf(exit.Usage, "%s takes %s, but got %d arguments; see: %s --help", c.CommandPath(), names, len(args),
			c.CommandPath())
	}
}
