package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cmdline"
)

func clusterProviders(g *globals) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:               "providers [NAME]",
		Short:             "Show where clusters can be made, and of which machines",
		Args:              cmdline.Args(0, 1, "at most the name of a provider"),
		ValidArgsFunction: g.completeProviders,
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.connect(c)
			if err != nil {
				return err
			}
			all, err := a.providers(c)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return showProvider(c.OutOrStdout(), all, args[0], &out)
			}
			return listProviders(c, all, &out)
		},
	}
	out.addTo(c, table, asJSON, asYAML, asName)
	return c
}

func (a *access) providers(c *cobra.Command) ([]v1alpha1.Provider, error) {
	all, err := listOf[v1alpha1.Provider](c.Context(), a, providerResource, "", metav1.ListOptions{})
	slices.SortFunc(all, func(x, y v1alpha1.Provider) int { return strings.Compare(x.Name, y.Name) })
	return all, a.explain("listing providers", err)
}

func listProviders(c *cobra.Command, all []v1alpha1.Provider, out *output) error {
	if !out.forPeople() {
		var objects []unstructured.Unstructured
		for _, p := range all {
			u, err := untyped(p)
			if err != nil {
				return err
			}
			objects = append(objects, *u)
		}
		return out.objects(c.OutOrStdout(), objects)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.ErrOrStderr(), "There are no providers yet, so no cluster can be made; the plane's operator installs them.")
		return err
	}
	rows := [][]string{{"NAME", "READY", "TITLE", "VERSION", "CAPABILITIES", "MACHINE-TYPES", "MESSAGE"}}
	for _, p := range all {
		s := p.Status
		rows = append(rows, []string{p.Name, readyWord(s.Conditions), s.Title, s.Version, strings.Join(s.Capabilities, ","), machineChoice(s), messageOf(s.Conditions)})
	}
	return (&clusterTable{}).print(c.OutOrStdout(), rows)
}

func machineChoice(s v1alpha1.ProviderStatus) string {
	switch n := len(s.MachineTypes); {
	case s.AnyShape && n > 0:
		return fmt.Sprintf("any, %d named", n)
	case s.AnyShape:
		return "any"
	default:
		return fmt.Sprint(n)
	}
}

func messageOf(conditions []metav1.Condition) string {
	if c := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return ""
}

func (g *globals) completeProviders(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	a, err := g.connect(c)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := a.providers(c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var choices []cobra.Completion
	for _, p := range all {
		choices = append(choices, cobra.CompletionWithDesc(p.Name, p.Status.Title))
	}
	return choices, cobra.ShellCompDirectiveNoFileComp
}
