// Package connect knows which plane a command means, reaches it, and says in clear words why it does not answer.
package connect

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Names that people call the program by: its own, and the one it has as a plugin of kubectl.
const (
	PolderName = "polder"
	PluginName = "kubectl polder"
)

// Globals are the flags that every command has. NewRoot makes them; they are filled in once the command line is read.
type Globals struct {
	DataDir string // that of the plane; empty if none is named and the user has no home
	// The commands on clusters can also talk to a plane elsewhere.
	kubeconfigFile string
	contextName    string
	// Or to its REST API, of which a kubeconfig may know nothing.
	server        string
	tokenFile     string
	authorityFile string

	Program string         // how people call it; empty is polder
	flags   *pflag.FlagSet // which say what was given

	Clock clock.PassiveClock // nil is the real one
}

// Now is the time by the clock of the command: ages and durations are told by it.
func (g *Globals) Now() time.Time {
	if g.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return g.Clock.Now()
}

// Plane is the one of the data directory, seen from outside: it need not run, nor have run. Without a directory, it is
// an error that says what to do.
func (g *Globals) Plane() (*lifecycle.Plane, error) {
	if g.DataDir == "" {
		return nil, exit.Errorf(exit.Usage, "this user has no home directory; name a directory for the plane with --data-dir")
	}
	return lifecycle.New(g.DataDir)
}

// Hint is a command of polder for people to copy. It names the data directory if that is not the default.
func (g *Globals) Hint(command string) string {
	text := cmp.Or(g.Program, PolderName) + " " + command
	if g.DataDir == datadir.Default() {
		return text
	}
	return text + " --data-dir " + g.DataDir
}

// KubectlHint is how people call kubectl on the plane of the same data directory; arguments of kubectl may follow.
func (g *Globals) KubectlHint() string {
	if g.Hint("kubectl") == "polder kubectl" {
		return "polder kubectl"
	}
	return "polder --data-dir " + g.DataDir + " kubectl" // what follows kubectl is kubectl's own
}

// RefuseKubeconfig keeps commands that know a plane by its directory from looking at one while another is meant: it is
// what they run before all else, and an error if a flag is given that means another.
func (g *Globals) RefuseKubeconfig(c *cobra.Command, _ []string) error {
	for _, name := range append([]string{"kubeconfig", "context"}, serverFlags()...) {
		if g.flags.Changed(name) {
			return exit.Errorf(exit.Usage,
				"--%s is for the commands on clusters; %s works on the plane of a directory, which you can name with --data-dir",
				name, c.CommandPath())
		}
	}
	return nil
}

// NewRoot is polder without its subcommands, and the flags that all of them have. program is how people call it,
// PolderName or PluginName: help and hints say it.
func NewRoot(program string) (*cobra.Command, *Globals) {
	g := &Globals{Program: program}
	root := &cobra.Command{
		Use:              PolderName,
		Annotations:      map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:            "Kubernetes clusters as a service",
		TraverseChildren: true, // so that flags of polder may stand before "kubectl"
	}
	cmdline.Prepare(root)
	root.PersistentFlags().StringVar(&g.DataDir, "data-dir", datadir.Default(), "`directory` of the plane")
	root.PersistentFlags().StringVar(&g.kubeconfigFile, "kubeconfig", "",
		"`file` with access to a plane, for the commands on clusters (default: $KUBECONFIG, else that of the data directory, else ~/.kube/config)")
	root.PersistentFlags().StringVar(&g.contextName, "context", "",
		"`name` of a context in that file, or of polder login (default: its current one)")
	root.PersistentFlags().StringVar(&g.server, "server", "",
		"`URL` of a plane's REST API, such as https://polder.example.org/v1, for the commands on clusters; namespaces are tenants")
	root.PersistentFlags().StringVar(&g.tokenFile, "token-file", "",
		"`file` with the token for --server (default: that of the login to it)")
	root.PersistentFlags().StringVar(&g.authorityFile, "certificate-authority", "",
		"`file` with the certificates of who may vouch for --server (default: those of the login to it, or the system's)")
	g.flags = root.PersistentFlags()
	return root, g
}
