package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Names people call the program by.
const (
	polderName = "polder"
	pluginName = "kubectl polder"
)

// CommandAs is polder as the process was called: kubectl finds plugins, and what completes their arguments, by
// the names of files, which may be links to polder.
func CommandAs(args []string) *cobra.Command {
	program, rest := splitProgramName(args)
	c := newCommand(program)
	c.SetArgs(rest)
	return c
}

func splitProgramName(args []string) (program string, rest []string) {
	if len(args) == 0 {
		return polderName, []string{}
	}
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case "kubectl-polder":
		return pluginName, args[1:]
	case "kubectl_complete-polder":
		return pluginName, append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return polderName, args[1:]
}

// newClusterCommands are those for customers.
func newClusterCommands(g *globals) []*cobra.Command {
	return []*cobra.Command{
		newCreateCommand(g), newApplyCommand(g), newGetCommand(g), newWaitCommand(g), newDescribeCommand(g), newKubeconfigCommand(g),
		newScaleCommand(g), newUpgradeCommand(g), newExportCommand(g), newDeleteCommand(g), newStacksCommand(g), newProvidersCommand(g),
	}
}
