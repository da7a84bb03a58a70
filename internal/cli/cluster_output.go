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
	formatText format = "" // one line for people
	formatWide format = "wide"
	formatName format = "name"
)

// outputFlag is the value of -o where not only tables, JSON and YAML are possible.
type outputFlag struct {
	format
	choices []string
}

// addFlags takes the first choice as the default.
func (o *outputFlag) addFlags(c *cobra.Command, choices ...format) {
	o.format = choices[0]
	for _, f := range choices {
		if f != formatText {
			o.choices = append(o.choices, string(f))
		}
	}
	c.Flags().VarP(o, "output", "o", joinOr(o.choices))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// Set refuses what the command does not have.
func (o *outputFlag) Set(s string) error {
	if !slices.Contains(o.choices, s) {
		return fmt.Errorf("choose %s", joinOr(o.choices))
	}
	o.format = format(s)
	return nil
}

// isHumanReadable says that it is no format a program would read.
func (o *outputFlag) isHumanReadable() bool {
	return o.format == formatText || o.format == formatTable || o.format == formatWide
}

// printObject prints one as JSON or YAML or by its name, without what only API servers read.
func (o *outputFlag) printObject(w io.Writer, u *unstructured.Unstructured) error {
	if o.format == formatName {
		_, err := fmt.Fprintln(w, kindAndName(u))
		return err
	}
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	return o.print(w, u.Object)
}

// printObjects prints several as kubectl does: as a List.
func (o *outputFlag) printObjects(w io.Writer, all []unstructured.Unstructured) error {
	if o.format == formatName {
		for i := range all {
			if err := o.printObject(w, &all[i]); err != nil {
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

// kindAndName is as kubectl has it.
func kindAndName(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetName()
}

// addNamespaceFlag is -n; access reads it.
func addNamespaceFlag(c *cobra.Command) {
	c.Flags().StringP("namespace", "n", "", "`namespace` (default: that of the kubeconfig)")
}

// completeClusterNames completes names of clusters, each once.
func completeClusterNames(g *globals, most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a, err := g.connect(c)
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
