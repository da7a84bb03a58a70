package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
)

// CommandAs is polder as the process was called: kubectl finds plugins, and what completes their arguments, by
// the names of files, which may be links to polder.
func CommandAs(args []string) *cobra.Command {
	program, rest := splitProgramName(args)
	c := newCommand(program)
	c.SetArgs(rest)
	return c
}

// splitProgramName knows the names by which kubectl calls its plugins, and asks them for completions.
func splitProgramName(args []string) (program string, rest []string) {
	if len(args) == 0 {
		return connect.PolderName, []string{}
	}
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case "kubectl-polder":
		return connect.PluginName, args[1:]
	case "kubectl_complete-polder":
		return connect.PluginName, append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return connect.PolderName, args[1:]
}
