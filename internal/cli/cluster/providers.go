package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// newProvidersCommand is polder providers.
func newProvidersCommand(g *connect.Globals) *cobra.Command {
	var out output.Flag
	c := &cobra.Command{
		Use:               "providers [NAME]",
		Short:             "Show where clusters can be made, and of which machines",
		Args:              cmdline.Args(0, 1, "at most the name of a provider"),
		ValidArgsFunction: completeProviders(g),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			all, err := listProviders(a, c)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return printProvider(c.OutOrStdout(), all, args[0], &out)
			}
			return printProviders(c, all, &out)
		},
	}
	out.AddFlags(c, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return c
}

// listProviders sorts: lists of API servers are ordered by key today, and promise nothing.
func listProviders(a *connect.Access, c *cobra.Command) ([]v1alpha1.Provider, error) {
	all, err := objects.List[v1alpha1.Provider](c.Context(), a, providerResource, "", metav1.ListOptions{})
	slices.SortFunc(all, func(x, y v1alpha1.Provider) int { return strings.Compare(x.Name, y.Name) })
	return all, a.Explain("listing providers", err)
}

// printProviders prints whole objects to programs and, to people, what they choose by.
func printProviders(c *cobra.Command, all []v1alpha1.Provider, out *output.Flag) error {
	if !out.IsHumanReadable() {
		var items []unstructured.Unstructured
		for _, p := range all {
			u, err := objects.ToUnstructured(p)
			if err != nil {
				return err
			}
			items = append(items, *u)
		}
		return out.PrintObjects(c.OutOrStdout(), items)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.ErrOrStderr(),
			"There are no providers yet, so no cluster can be made; the plane's operator installs them.")
		return err
	}
	rows := [][]string{{"NAME", "READY", "TITLE", "VERSION", "CAPABILITIES", "MACHINE-TYPES", "MESSAGE"}}
	for _, p := range all {
		s := p.Status
		rows = append(rows, []string{
			p.Name, readyStatus(s.Conditions), s.Title, s.Version, strings.Join(s.Capabilities, ","), describeMachineTypes(s),
			readyMessage(s.Conditions),
		})
	}
	return (&table{}).print(c.OutOrStdout(), rows)
}

// describeMachineTypes tells apart providers that make machines of any shape from those that have a list.
func describeMachineTypes(s v1alpha1.ProviderStatus) string {
	switch n := len(s.MachineTypes); {
	case s.AnyShape && n > 0:
		return fmt.Sprintf("any, %d named", n)
	case s.AnyShape:
		return "any"
	default:
		return fmt.Sprint(n)
	}
}

// readyMessage is the sentence of the condition Ready, which says what is wrong.
func readyMessage(conditions []metav1.Condition) string {
	if c := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return ""
}

// completeProviders completes names, with titles beside them.
func completeProviders(g *connect.Globals) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a, err := g.Connect(c)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := listProviders(a, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var choices []cobra.Completion
		for _, p := range all {
			choices = append(choices, cobra.CompletionWithDesc(p.Name, p.Status.Title))
		}
		return choices, cobra.ShellCompDirectiveNoFileComp
	}
}
