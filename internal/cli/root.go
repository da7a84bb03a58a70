// Package cli is the command line of polder: one file for each command.
package cli

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/commanddocs"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// globals are the flags every command has.
type globals struct {
	dataDir string
	// The commands for customers, cluster_*.go, can also talk to a plane elsewhere.
	kubeconfigFile string
	contextName    string

	program string         // how people call it; empty is polder
	flags   *pflag.FlagSet // which say what was given
}

func (g *globals) plane() (*lifecycle.Plane, error) {
	if g.dataDir == "" {
		return nil, exit.Errorf(exit.Usage, "this user has no home directory; name a directory for the plane with --data-dir")
	}
	return lifecycle.New(g.dataDir)
}

// hint is a command of polder for people to copy, on the same data directory.
func (g *globals) hint(command string) string {
	text := cmp.Or(g.program, polderName) + " " + command
	if g.dataDir == datadir.Default() {
		return text
	}
	return text + " --data-dir " + g.dataDir
}

// Command is polder with all its subcommands.
func Command() *cobra.Command { return newCommand(polderName) }

// newRoot is polder without its subcommands, and the flags that all of them have.
func newRoot(program string) (*cobra.Command, *globals) {
	g := &globals{program: program}
	root := &cobra.Command{
		Use:              polderName,
		Annotations:      map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:            "Kubernetes clusters as a service",
		TraverseChildren: true, // so that flags of polder may stand before "kubectl"
	}
	cmdline.Prepare(root)
	root.PersistentFlags().StringVar(&g.dataDir, "data-dir", datadir.Default(), "`directory` of the plane")
	root.PersistentFlags().StringVar(&g.kubeconfigFile, "kubeconfig", "", "`file` with access to a plane, for the commands on clusters (default: $KUBECONFIG, else that of the data directory, else ~/.kube/config)")
	root.PersistentFlags().StringVar(&g.contextName, "context", "", "`name` of a context in that file (default: its current one)")
	g.flags = root.PersistentFlags()
	return root, g
}

func newCommand(program string) *cobra.Command {
	root, g := newRoot(program)
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
  polder stacks       shows what clusters can be made of, polder providers where

  polder up           starts the plane and waits until it is ready
  polder status       says how it is
  polder kubectl      talks to it, as any kubectl does
  polder machine      shows the machines of local clusters
  polder down         stops it; all data stays`
	here := []*cobra.Command{newUpCommand(g), newStatusCommand(g), newDownCommand(g), newKubectlCommand(g), newMachineCommand(g), newStackCommand(g)}
	for _, c := range here {
		c.PersistentPreRunE = g.refuseKubeconfig
	}
	root.AddCommand(here...)
	root.AddCommand(newVersionCommand(g), commanddocs.Command())
	root.AddCommand(newClusterCommands(g)...)
	return root
}

// refuseKubeconfig keeps commands that know a plane by its directory from looking at one while another is meant.
func (g *globals) refuseKubeconfig(c *cobra.Command, _ []string) error {
	for _, name := range []string{"kubeconfig", "context"} {
		if g.flags.Changed(name) {
			return exit.Errorf(exit.Usage, "--%s is for the commands on clusters; %s works on the plane of a directory, which you can name with --data-dir", name, c.CommandPath())
		}
	}
	return nil
}
