package cluster

import (
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/internal/cli/connect"
)

// completeNames completes names of clusters, each once.
func completeNames(g *connect.Globals, most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a, err := g.Connect(c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		l, err := clusterClient(a).List(c.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var choices []cobra.Completion
		for _, u := range l.Items {
			if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); !slices.Contains(args, u.GetName()) {
				choices = append(choices, cobra.CompletionWithDesc(u.GetName(), phase))
			}
		}
		return choices, cobra.ShellCompDirectiveNoFileComp
	}
}

// addNamespaceFlag is -n; connect.Globals.Connect reads it.
func addNamespaceFlag(c *cobra.Command) {
	c.Flags().StringP("namespace", "n", "", "`namespace` (default: that of the kubeconfig)")
}
