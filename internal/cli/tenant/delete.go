package tenant

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func newDeleteCommand(g *connect.Globals) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Take everybody out of a tenant; its namespace and clusters stay",
		Long: `delete takes the rights of all members away and ends the tokens of all robots. It deletes no cluster and no namespace, and says what
remains. Kubeconfigs of clusters that members have got are valid until they end, eight hours at most.`,
		Args:              cmdline.Args(1, 1, "the name of a tenant"),
		ValidArgsFunction: completeNames(g),
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				return exit.Errorf(exit.Usage, "nobody of tenant %s could do anything after that; say --yes", args[0])
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			t, err := get(c.Context(), a, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), connect.RequestTimeout)
			defer cancel()
			// What remains is said by the plane, as a warning.
			err = a.Client.Resource(tenantResource).Delete(ctx, t.Name, metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions(string(t.UID)),
			})
			if err != nil {
				return explain(a, fmt.Sprintf("deleting tenant %q", t.Name), t.Name, err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "tenant/%s is deleted\n", t.Name)
			return err
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do it")
	return c
}
