package plane

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"

	"github.com/polder-kaas/polder/internal/cli/connect"
	_ "github.com/polder-kaas/polder/internal/cli/plane/translations" // before kubectl asks for all of them
	"github.com/polder-kaas/polder/internal/program/exit"
)

// NewKubectlCommand is polder kubectl: Kubernetes' own, pointed at the plane. It ignores $KUBECONFIG on purpose: who
// says polder means the plane; who means another cluster says --kubeconfig.
func NewKubectlCommand(g *connect.Globals) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "Talk to the plane with kubectl (built in)",
		DisableFlagParsing: true, // all flags are kubectl's
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			elsewhere := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--kubeconfig") })
			if _, err := os.Stat(p.Kubeconfig()); err != nil && !elsewhere {
				return exit.Errorf(exit.Failure, "there is no plane in %s yet; start one with: polder up", p.Dir())
			}
			flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
			kubeconfig := p.Kubeconfig()
			flags.KubeConfig = &kubeconfig
			k := kubectlcmd.NewKubectlCommand(kubectlcmd.KubectlOptions{
				ConfigFlags: flags,
				IOStreams:   genericiooptions.IOStreams{In: c.InOrStdin(), Out: c.OutOrStdout(), ErrOut: c.ErrOrStderr()},
			})
			k.SetArgs(args)
			return k.ExecuteContext(c.Context())
		},
	}
}
