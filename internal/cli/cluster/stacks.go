package cluster

import (
	"cmp"
	"fmt"
	"slices"
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
	var minor string
	var out output.Flag
	c := &cobra.Command{
		Use:   "stacks [NAME]",
		Short: "Show which stacks clusters can be made of here, and their parameters",
		Long: `stacks shows the stacks of the namespace and of the catalogue, which all namespaces may use. STACK and KUBERNETES are
what polder create takes as --stack and --kubernetes. What is behind one that is not ready, polder stack status says.

With the name of a stack it shows what clusters of its newest release can choose in spec.parameters: the type of each
parameter, its default, which values are allowed, what it means, and which machines are replaced when it changes.`,
		Example: `  polder stacks
  polder stacks scs --kubernetes 1.36 -o yaml`,
		Args:              cmdline.Args(0, 1, "at most the name of a stack"),
		ValidArgsFunction: completeStacks(g),
		RunE: func(c *cobra.Command, args []string) error {
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
			if len(args) == 1 {
				return showStack(c, a, all, args[0], minor, &out)
			}
			if minor != "" {
				return exit.Errorf(exit.Usage, "--kubernetes needs the name of a stack")
			}
			return printStacks(c, a, all, &out)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "stacks of all namespaces")
	c.Flags().StringVar(&minor, "kubernetes", "",
		"with NAME: parameters for this `minor` of Kubernetes (default: the newest)")
	out.AddFlags(c, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return c
}

// completeStacks completes the names of stacks.
func completeStacks(g *connect.Globals) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a, err := g.Connect(c)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := objects.ListStacks(c.Context(), a, a.Namespace, v1alpha1.CatalogueNamespace)
		var names []cobra.Completion
		for _, s := range all {
			names = append(names, s.Spec.Name)
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
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
