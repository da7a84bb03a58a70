// Package cli is the command line of polder: one file for each command.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cmdline"
	"github.com/polder-kaas/polder/internal/exit"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/planectl"
	"github.com/polder-kaas/polder/internal/reference"
)

// globals are the flags every command has.
type globals struct {
	dataDir string
}

func (g *globals) plane() (*planectl.Plane, error) {
	if g.dataDir == "" {
		return nil, exit.Errorf(exit.Usage, "this user has no home directory; name a directory for the plane with --data-dir")
	}
	return planectl.New(g.dataDir)
}

// hint is a command of polder for people to copy, on the same data directory.
func (g *globals) hint(command string) string {
	if g.dataDir == datadir.Default() {
		return "polder " + command
	}
	return "polder " + command + " --data-dir " + g.dataDir
}

// Command is polder with all its subcommands.
func Command() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:   "polder",
		Short: "Kubernetes clusters as a service",
		Long: `polder runs a management plane for Kubernetes clusters on this machine and works with it.

  polder up         starts the plane and waits until it is ready
  polder status     says how it is
  polder kubectl    talks to it, as any kubectl does
  polder machine    shows the machines of local clusters
  polder down       stops it; all data stays`,
		TraverseChildren: true, // so that flags of polder may stand before "kubectl"
	}
	cmdline.Prepare(root)
	root.PersistentFlags().StringVar(&g.dataDir, "data-dir", datadir.Default(), "`directory` of the plane")
	root.AddCommand(up(g), status(g), down(g), versionCommand(g), kubectl(g), machine(g), stackCommand(g), reference.Command())
	return root
}
