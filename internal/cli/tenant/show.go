package tenant

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/quota/counted"
)

func newListCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "list",
		Short: "List all tenants, for platform operators",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			all, err := objects.List[v1alpha1.Tenant](c.Context(), a, tenantResource, "", metav1.ListOptions{})
			if err != nil {
				return a.Explain("listing tenants", err)
			}
			slices.SortFunc(all, func(x, y v1alpha1.Tenant) int { return strings.Compare(x.Name, y.Name) })
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), v1alpha1.TenantList{
					TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantList"}, Items: all,
				})
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(c.OutOrStdout(), "There are no tenants; make one with: %s\n",
					a.Hint("tenant create NAME --admins group:NAME"))
				return err
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(t, "NAME\tREADY\tPLANE\tNAMESPACE\tMEMBERS\tROBOTS\tTITLE\tMESSAGE")
			for i := range all {
				ready, message := state(&all[i])
				if ready == "True" {
					message = ""
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", all[i].Name, ready, describePlane(&all[i]), all[i].NamespaceName(),
					len(all[i].Spec.Members), len(all[i].Spec.Robots), output.Sanitize(all[i].Spec.Title), message)
			}
			return t.Flush()
		},
	}
	out.AddFlags(c)
	return c
}

// describePlane says whose plane a tenant's clusters are in; an older plane does not say.
func describePlane(t *v1alpha1.Tenant) string {
	return strings.ToLower(string(cmp.Or(t.Spec.Plane, v1alpha1.SharedPlane)))
}

// state returns whether a tenant is ready, and what is said of it.
func state(t *v1alpha1.Tenant) (ready, message string) {
	r := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	if r == nil {
		return "Unknown", "nobody has looked at it yet"
	}
	return string(r.Status), output.Sanitize(r.Message)
}

func newDescribeCommand(g *connect.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:               "describe NAME",
		Short:             "Say who belongs to a tenant, what it may have and what it uses",
		Args:              cmdline.Args(1, 1, "the name of a tenant"),
		ValidArgsFunction: completeNames(g),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			t, err := get(c.Context(), a, args[0])
			if err != nil {
				return err
			}
			return describe(c.Context(), c.OutOrStdout(), a, t)
		},
	}
	return c
}

// describe prints a tenant. What somebody may not read of it is left out.
func describe(ctx context.Context, w io.Writer, a *connect.Access, t *v1alpha1.Tenant) error {
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	ready, message := state(t)
	fmt.Fprintf(tab, "Tenant:\t%s\n", t.Name)
	if t.Spec.Title != "" {
		fmt.Fprintf(tab, "Title:\t%s\n", output.Sanitize(t.Spec.Title))
	}
	fmt.Fprintf(tab, "Ready:\t%s, %s\nPlane:\t%s\nNamespace:\t%s\n", ready, message, describePlane(t), t.NamespaceName())
	for _, x := range []struct {
		name    string
		allowed []string
	}{
		{"Providers", t.Spec.Allow.Providers}, {"Stacks", t.Spec.Allow.Stacks}, {"Machine types", t.Spec.Allow.MachineTypes},
	} {
		fmt.Fprintf(tab, "%s:\t%s\n", x.name, output.Sanitize(cmp.Or(strings.Join(x.allowed, ", "), "all")))
	}
	for _, p := range t.Spec.Allow.Parameters {
		fmt.Fprintf(tab, "Parameter %s:\t%s\n", output.Sanitize(p.Name), describeValues(p))
	}
	if err := printUsage(ctx, tab, a, t.NamespaceName()); err != nil {
		return err
	}
	fmt.Fprintln(tab, "\nMEMBER\tROLE")
	for _, m := range t.Spec.Members {
		fmt.Fprintf(tab, "%s\t%s\n", output.Sanitize(formatMember(m)), m.Role)
	}
	for _, r := range t.Spec.Robots {
		fmt.Fprintf(tab, "robot:%s\t%s\n", r.Name, r.Role)
	}
	return tab.Flush()
}

// describeValues says what a parameter may be.
func describeValues(p v1alpha1.AllowedParameter) string {
	if len(p.Values) == 0 {
		return "may not be set"
	}
	var out []string
	for _, v := range p.Values {
		out = append(out, output.Sanitize(string(v.Raw)))
	}
	return strings.Join(out, " or ")
}

// printUsage prints what is used of the quota.
func printUsage(ctx context.Context, w io.Writer, a *connect.Access, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := a.Client.Resource(corev1.SchemeGroupVersion.WithResource("resourcequotas")).Namespace(namespace).Get(ctx,
		v1alpha1.TenantQuotaName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return a.Explain("reading the quota", err)
	}
	q, err := objects.FromUnstructured[corev1.ResourceQuota](u)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "\nQUOTA\tUSED\tOF")
	for _, name := range counted.All() {
		most, limited := q.Spec.Hard[name]
		if used := q.Status.Used[name]; limited {
			fmt.Fprintf(w, "%s\t%s\t%s\n", counted.Describe(name), used.String(), most.String())
		}
	}
	return nil
}
