package login

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// identity is who somebody is for a plane.
type identity struct {
	Plane    string   `json:"plane"`
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
}

func newWhoAmICommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "whoami",
		Short: "Say who you are for a plane",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), connect.RequestTimeout)
			defer cancel()
			who, err := reviewSelf(ctx, a.Config)
			if err != nil {
				return a.Explain("asking who you are", err)
			}
			who.Plane = a.Address
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), who)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintf(t, "Plane:\t%s\nUser:\t%s\nGroups:\t%s\n", who.Plane, output.Sanitize(who.Username),
				output.Sanitize(strings.Join(who.Groups, ", ")))
			return t.Flush()
		},
	}
	out.AddFlags(c)
	return c
}

// reviewSelf asks a plane who it takes us for.
func reviewSelf(ctx context.Context, cfg *rest.Config) (identity, error) {
	k, err := authenticationclient.NewForConfig(cfg)
	if err != nil {
		return identity{}, err
	}
	r, err := k.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return identity{}, err
	}
	return identity{Username: r.Status.UserInfo.Username, Groups: r.Status.UserInfo.Groups}, nil
}
