// Package cluster has the commands of polder on clusters, for customers: create, get, wait and so on.
package cluster

import (
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
)

// NewCommands are the commands of polder for customers, in the order of the help.
func NewCommands(g *connect.Globals) []*cobra.Command {
	return []*cobra.Command{
		newCreateCommand(g), newApplyCommand(g), newGetCommand(g), newWaitCommand(g), newDescribeCommand(g),
		newKubeconfigCommand(g),
		newScaleCommand(g), newUpgradeCommand(g), newExportCommand(g), newDeleteCommand(g), newRecreateCommand(g),
		newStacksCommand(g),
		newProvidersCommand(g),
	}
}
