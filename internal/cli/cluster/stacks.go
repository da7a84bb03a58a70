package cluster

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/version"
)

// newStacksCommand is polder stacks.
func newStacksCommand(g *connect.Globals) *cobra.Command {
	var everywhere bool
	var out output.Flag
	c := &cobra.Command{
		Use:   "stacks",
		Short: "Show which stacks clusters can be made of here",
		Long: `stacks shows the stacks of the namespace and of the catalogue, which all namespaces may use. STACK and KUBERNETES are
what polder create takes as --stack and --kubernetes. What is behind one that is not ready, polder stack status says.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if everywhere && c.Flags().Changed("namespace") {
				return exit.Errorf(exit.Usage, "--namespace and --all-namespaces contradict each other; give one of them")
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			namespaces := []string{a.Namespace, v1alpha1.CatalogueNamespace}
			if everywhere {
				namespaces = []string{""}
			}
			all, problems := objects.ListStacks(c.Context(), a, namespaces...)
			if len(all) == 0 && len(problems) > 0 {
				return problems[0]
			}
			for _, p := range problems {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", p)
			}
			return printStacks(c, a, all, &out)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "stacks of all namespaces")
	out.AddFlags(c, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return c
}

// printStacks tells whoever runs the plane how to get a stack, and everybody else whom to ask.
func printStacks(c *cobra.Command, a *connect.Access, all []csv1.ClusterStack, out *output.Flag) error {
	if !out.IsHumanReadable() {
		var items []unstructured.Unstructured
		for _, s := range all {
			u, err := objects.ToUnstructured(s)
			if err != nil {
				return err
			}
			items = append(items, *u)
		}
		return out.PrintObjects(c.OutOrStdout(), items)
	}
	if len(all) == 0 {
		how := ""
		if a.Local {
			how = "; how, says: " + a.Hint("stack status")
		}
		_, err := fmt.Fprintf(c.ErrOrStderr(), "There is no stack for namespace %s. Whoever runs the plane adds one%s\n",
			a.Namespace, cmp.Or(how, "."))
		return err
	}
	rows := [][]string{{"PROVIDER", "STACK", "KUBERNETES", "CHANNEL", "NEWEST", "READY", "NAMESPACE"}}
	for _, s := range all {
		rows = append(rows, []string{
			s.Spec.Provider, s.Spec.Name, s.Spec.KubernetesVersion, cmp.Or(string(s.Spec.Channel), string(csv1.ChannelStable)),
			newestReleaseOf(s), readyStatus(s.Status.Conditions), s.Namespace,
		})
	}
	return (&table{}).print(c.OutOrStdout(), rows)
}

// newestReleaseOf is the version of the newest release, with its version of Kubernetes, of "NAME | KUBERNETES".
func newestReleaseOf(s csv1.ClusterStack) string {
	if s.Status.LatestRelease == nil {
		return ""
	}
	name, kubernetes, _ := strings.Cut(*s.Status.LatestRelease, " | ")
	if r, err := version.ParseReleaseName(name); err == nil {
		name = r.Version.String()
	}
	return output.JoinNonEmpty(" ", name, parenthesize(kubernetes))
}
