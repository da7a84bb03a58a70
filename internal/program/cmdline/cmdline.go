// Package cmdline has what Polder's programs have in common on the command line: bad input gets one sentence that
// says what to do, and the exit code for bad input.
package cmdline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
		return exit.Errorf(exit.Usage, "%w; see: %s --help", explainFlagError(err), c.CommandPath())
	})
}

// explainFlagError says in plain words what Go's parsers say of a flag's value.
func explainFlagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	flag := bad.GetFlag()
	switch flag.Value.Type() {
	case "int", "int32", "int64", "uint", "uint16", "uint32":
		return fmt.Errorf("--%s %q is no whole number that fits here", flag.Name, bad.GetValue())
	case "bool":
		return fmt.Errorf("--%s %q is neither true nor false", flag.Name, bad.GetValue())
	case "duration":
		return fmt.Errorf("--%s %q is no time that fits here; write, for example, 90s or 20m", flag.Name, bad.GetValue())
	}
	return err
}

// NoArgs refuses arguments; for an unknown command it suggests the one that may have been meant.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasParent() && !c.HasSubCommands():
		return exit.Errorf(exit.Usage, "%s takes no arguments, but got %q; see: %s --help", c.CommandPath(), args[0],
			c.CommandPath())
	}
	hint := ""
	c.SuggestionsMinimumDistance = 2 // of the root alone it is set by Prepare
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		hint = "; did you mean " + s[0] + "?"
	}
	return exit.Errorf(exit.Usage, "%s has no command %q%s; see: %s --help", c.CommandPath(), args[0], hint,
		c.CommandPath())
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
