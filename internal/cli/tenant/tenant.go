// Package tenant has the commands of polder on tenants: for platform operators, who make them, and for their admins,
// who say who belongs to them.
package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// tenantResource is that of Tenants.
var tenantResource = v1alpha1.GroupVersion.WithResource("tenants")

// NewCommand is polder tenant, with all that is below it.
func NewCommand(g *connect.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "tenant",
		Short: "Make tenants, and say who belongs to them",
		Long: `A tenant is a customer: who belongs to it, how much it may have, and a namespace with its clusters.

  polder tenant create     makes one
  polder tenant list       lists all of them
  polder tenant describe   says who belongs to one, what it may have and what it uses
  polder tenant add        takes people into it
  polder tenant remove     takes people and robots out of it
  polder tenant robot      gets a token for a program
  polder tenant delete     takes everybody out; namespace and clusters stay

Members are written as group:NAME or user:NAME, with the names that polder whoami shows.`,
	}
	c.AddCommand(newCreateCommand(g), newListCommand(g), newDescribeCommand(g), newAddCommand(g), newRemoveCommand(g),
		newRobotCommand(g), newDeleteCommand(g))
	return c
}

// get reads a tenant.
func get(ctx context.Context, a *connect.Access, name string) (*v1alpha1.Tenant, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := a.Client.Resource(tenantResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(a, fmt.Sprintf("reading tenant %q", name), name, err)
	}
	return objects.FromUnstructured[v1alpha1.Tenant](u)
}

// explain also knows that the tenant may not be there.
func explain(a *connect.Access, doing, name string, err error) error {
	if apierror.IsObjectNotFound(err, tenantResource.Resource, name) {
		return exit.Errorf(exit.Usage, "there is no tenant %q; see which there are with: %s", name, a.Hint("tenant list"))
	}
	return a.Explain(doing, err)
}

// change changes members and robots of a tenant, and tries again if somebody else changes it at the same time. It
// writes no other field: a newer plane may have some that are not known here.
func change(ctx context.Context, a *connect.Access, name string, edit func(*v1alpha1.TenantSpec) error) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	var refused error // of ours, not of the plane's
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		u, err := a.Client.Resource(tenantResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		t, err := objects.FromUnstructured[v1alpha1.Tenant](u)
		if err != nil {
			return err
		}
		if refused = edit(&t.Spec); refused != nil {
			return nil
		}
		changed, err := objects.ToUnstructured(t)
		if err != nil {
			return err
		}
		for _, field := range []string{"members", "robots"} {
			list, _, err := unstructured.NestedSlice(changed.Object, "spec", field)
			if err == nil {
				err = unstructured.SetNestedSlice(u.Object, list, "spec", field)
			}
			if err != nil {
				return err
			}
		}
		_, err = a.Client.Resource(tenantResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: "polder"})
		return err
	})
	if refused != nil {
		return refused
	}
	return explain(a, fmt.Sprintf("changing tenant %q", name), name, err)
}

// parseMember reads group:NAME or user:NAME.
func parseMember(text string) (v1alpha1.MemberKind, string, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case name != "" && kind == "group":
		return v1alpha1.MemberGroup, name, nil
	case name != "" && kind == "user":
		return v1alpha1.MemberUser, name, nil
	}
	return "", "", exit.Errorf(exit.Usage, "%q is no member; write group:NAME or user:NAME, with the name that polder whoami shows", text)
}

// formatMember is the reverse of parseMember.
func formatMember(m v1alpha1.TenantMember) string {
	return strings.ToLower(string(m.Kind)) + ":" + m.Name
}

// memberFlags are those that name members by their roles.
type memberFlags map[v1alpha1.TenantRole]*[]string

// addFlags adds --admins, --editors and --viewers.
func (f *memberFlags) addFlags(c *cobra.Command) {
	*f = memberFlags{}
	for role, what := range map[v1alpha1.TenantRole]string{
		v1alpha1.TenantAdmin:  "who may also say who else is a member",
		v1alpha1.TenantEditor: "who may make, change and delete clusters",
		v1alpha1.TenantViewer: "who may see clusters",
	} {
		names := &[]string{}
		(*f)[role] = names
		c.Flags().StringSliceVar(names, string(role)+"s", nil, what+": `members` as group:NAME or user:NAME")
	}
}

// read returns the members that the flags name.
func (f memberFlags) read() (out []v1alpha1.TenantMember, err error) {
	for _, role := range []v1alpha1.TenantRole{v1alpha1.TenantAdmin, v1alpha1.TenantEditor, v1alpha1.TenantViewer} {
		for _, text := range *f[role] {
			kind, name, err := parseMember(text)
			if err != nil {
				return nil, err
			}
			m := v1alpha1.TenantMember{Kind: kind, Name: name, Role: role}
			if i := slices.IndexFunc(out, isMember(kind, name)); i >= 0 {
				return nil, exit.Errorf(exit.Usage, "%s is named as %s and as %s; each member has one role, and admins may do all that others may",
					text, out[i].Role, role)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// completeNames completes the name of a tenant, for those who may list them.
func completeNames(g *connect.Globals) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a, err := g.Connect(c)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, err := a.Client.Resource(tenantResource).List(c.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, u := range l.Items {
			out = append(out, u.GetName())
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
