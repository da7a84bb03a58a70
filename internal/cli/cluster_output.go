package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Further values of -o; not every command has all of them.
const (
	asText format = "" // one line for people
	asWide format = "wide"
	asName format = "name"
)

// output is the value of -o where not only tables, JSON and YAML are possible.
type output struct {
	format
	choices []string
}

// addTo takes the first choice as the default.
func (o *output) addTo(c *cobra.Command, choices ...format) {
	o.format = choices[0]
	for _, f := range choices {
		if f != asText {
			o.choices = append(o.choices, string(f))
		}
	}
	c.Flags().VarP(o, "output", "o", either(o.choices))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// Set refuses what the command does not have.
func (o *output) Set(s string) error {
	if !slices.Contains(o.choices, s) {
		return fmt.Errorf("choose %s", either(o.choices))
	}
	o.format = format(s)
	return nil
}

// forPeople says that it is no format a program would read.
func (o *output) forPeople() bool {
	return o.format == asText || o.format == table || o.format == asWide
}

// object prints one as JSON or YAML or by its name, without what only API servers read.
func (o *output) object(w io.Writer, u *unstructured.Unstructured) error {
	if o.format == asName {
		_, err := fmt.Fprintln(w, nameOf(u))
		return err
	}
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	return o.print(w, u.Object)
}

// objects prints several as kubectl does: as a List.
func (o *output) objects(w io.Writer, all []unstructured.Unstructured) error {
	if o.format == asName {
		for i := range all {
			if err := o.object(w, &all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	items := []any{}
	for _, u := range all {
		u.SetManagedFields(nil)
		items = append(items, u.Object)
	}
	return o.print(w, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
}

// nameOf is as kubectl has it.
func nameOf(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetName()
}

// namespaceFlag is -n; access reads it.
func namespaceFlag(c *cobra.Command) {
	c.Flags().StringP("namespace", "n", "", "`namespace` (default: that of the kubeconfig)")
}

// completeNames completes names of clusters, each once.
func (g *globals) completeNames(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a, err := g.connect(c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		l, err := a.clusters().List(c.Context(), metav1.ListOptions{})
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
