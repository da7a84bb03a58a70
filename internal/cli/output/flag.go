package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Further values of -o; not every command has all of them.
const (
	FormatText Format = "" // one line for people
	FormatWide Format = "wide"
	FormatName Format = "name"
)

// Flag is the value of -o where not only tables, JSON and YAML are possible.
type Flag struct {
	Format
	choices []string
}

// AddFlags adds -o to a command, with these choices; the first is the default.
func (o *Flag) AddFlags(c *cobra.Command, choices ...Format) {
	o.Format = choices[0]
	for _, f := range choices {
		if f != FormatText {
			o.choices = append(o.choices, string(f))
		}
	}
	c.Flags().VarP(o, "output", "o", JoinOr(o.choices))
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.choices, cobra.ShellCompDirectiveNoFileComp))
}

// Set refuses what the command does not have.
func (o *Flag) Set(s string) error {
	if !slices.Contains(o.choices, s) {
		return fmt.Errorf("choose %s", JoinOr(o.choices))
	}
	o.Format = Format(s)
	return nil
}

// IsHumanReadable says that it is no format a program would read.
func (o *Flag) IsHumanReadable() bool {
	return o.Format == FormatText || o.Format == FormatTable || o.Format == FormatWide
}

// PrintObject prints an object as JSON or YAML or by its name, without what only API servers read. The object stays as
// it is.
func (o *Flag) PrintObject(w io.Writer, u *unstructured.Unstructured) error {
	if o.Format == FormatName {
		_, err := fmt.Fprintln(w, KindAndName(u))
		return err
	}
	u = u.DeepCopy()
	clearForPrograms(u)
	return o.Print(w, u.Object)
}

// PrintObjects prints objects as kubectl does: as a List, or their names in lines. It takes from them what only API
// servers read.
func (o *Flag) PrintObjects(w io.Writer, all []unstructured.Unstructured) error {
	if o.Format == FormatName {
		for i := range all {
			if err := o.PrintObject(w, &all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	items := []any{}
	for _, u := range all {
		clearForPrograms(&u)
		items = append(items, u.Object)
	}
	return o.Print(w, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
}

// clearForPrograms takes from an object what only API servers and controllers read. The REST API leaves it out, too.
func clearForPrograms(u *unstructured.Unstructured) {
	for _, field := range []string{
		"managedFields", "finalizers", "ownerReferences", "generateName", "selfLink", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, name := range []string{lastAppliedAnnotation, v1alpha1.IdempotencyAnnotation} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
	}
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
}

// lastAppliedAnnotation is what kubectl apply remembers.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// KindAndName is an object in a word, as kubectl has it: workloadcluster/demo.
func KindAndName(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetName()
}
