// Package cli puts polder together: its root command, and below it the commands of the packages beside it.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/apiconformance"
	"github.com/polder-kaas/polder/internal/cli/cluster"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/login"
	"github.com/polder-kaas/polder/internal/cli/machine"
	"github.com/polder-kaas/polder/internal/cli/plane"
	"github.com/polder-kaas/polder/internal/cli/stackauthor"
	"github.com/polder-kaas/polder/internal/cli/tenant"
	"github.com/polder-kaas/polder/internal/program/commanddocs"
)

// Command is polder with all its subcommands.
func Command() *cobra.Command { return newCommand(connect.PolderName) }

// newCommand puts all rooms together.
func newCommand(program string) *cobra.Command {
	root, g := connect.NewRoot(program)
	root.Long = `polder gets you Kubernetes clusters. It also runs the management plane that makes them, on this machine.

  polder create       asks for a cluster; polder apply -f does so again and again
  polder get          lists clusters
  polder wait         waits until one is ready, and tells how far it is
  polder describe     says how one is, why, and who must do what
  polder kubeconfig   gets access to one for some hours
  polder scale        changes how many machines it has
  polder upgrade      shows newer versions, or takes one
  polder export       writes one as a file that another provider can take
  polder delete       deletes it
  polder recreate     makes a lost one anew, and empty
  polder stacks       shows what clusters can be made of, polder providers where
  polder login        logs in to a plane elsewhere, polder whoami says as whom, polder logout ends it
  polder tenant       says who may have clusters here, and how many

  polder up           starts the plane and waits until it is ready
  polder status       says how it is
  polder kubectl      talks to it, as any kubectl does
  polder machine      shows the machines of local clusters
  polder maintain     gives space that its store does not need back to the disk
  polder backup       writes all of it to a file, polder restore makes a plane of that
  polder audit        shows who did what in it
  polder down         stops it; all data stays

  polder api-conformance judges servers of the REST API, for providers that have one of their own`
	here := []*cobra.Command{
		plane.NewUpCommand(g), plane.NewStatusCommand(g), plane.NewDownCommand(g), plane.NewKubectlCommand(g),
		plane.NewMaintainCommand(g), plane.NewBackupCommand(g), plane.NewRestoreCommand(g),
		plane.NewAuditCommand(g), machine.NewCommand(g), stackauthor.NewCommand(g),
	}
	for _, c := range here {
		c.PersistentPreRunE = g.RefuseKubeconfig
	}
	root.AddCommand(here...)
	root.AddCommand(plane.NewVersionCommand(g), commanddocs.Command())
	root.AddCommand(cluster.NewCommands(g)...)
	root.AddCommand(login.NewCommands(g)...)
	root.AddCommand(tenant.NewCommand(g), apiconformance.NewCommand())
	return root
}
