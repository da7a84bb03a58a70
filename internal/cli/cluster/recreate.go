package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// recreateOptions is one call of polder recreate.
type recreateOptions struct {
	yes        bool
	isTerminal func(io.Reader) bool
}

// newRecreateCommand is polder recreate.
func newRecreateCommand(g *connect.Globals) *cobra.Command {
	r := &recreateOptions{isTerminal: isTerminal}
	c := &cobra.Command{
		Use:   "recreate NAME",
		Short: "Make a lost cluster anew, and empty",
		Long: `recreate is for a cluster that is lost: its Cluster was deleted behind Polder's back, and its status says so.
It gets the same name and the same spec, but nothing of what was in it. If there is a backup of the plane, restore that
instead.`,
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			return r.run(c, a, args[0])
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	return c
}

func (r *recreateOptions) run(c *cobra.Command, a *connect.Access, name string) error {
	if !r.yes && !r.isTerminal(c.InOrStdin()) {
		return exit.Errorf(exit.Usage, "recreate asks before it gives up a lost cluster, and here is nobody to ask; say --yes")
	}
	cluster, err := getCluster(c.Context(), a, name)
	if err != nil {
		return err
	}
	lost := lostUID(cluster)
	if lost == "" {
		return exit.Errorf(exit.Usage, "cluster %q is not lost (it is %s), so there is nothing to make anew; "+
			"to begin with an empty one, delete it and create it again", name, cluster.Status.Phase)
	}
	if !r.yes {
		q := question{toDo: "make an empty one in its place", notDone: "was not made anew"}
		if err := q.ask(c.Context(), bufio.NewReader(c.InOrStdin()), c.ErrOrStderr(), cluster, a.Globals.Now()); err != nil {
			return err
		}
	}
	if err := annotateRecreate(c.Context(), a, cluster, lost); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "workloadcluster/%s is being made anew\n", name)
	return err
}

// lostUID is the UID of the Cluster of a WorkloadCluster if that is gone, or has not come with it from another plane,
// as its status says.
func lostUID(c *v1alpha1.WorkloadCluster) string {
	applied := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionApplied)
	if applied == nil || applied.Reason != v1alpha1.ReasonClusterLost && applied.Reason != v1alpha1.ReasonClusterMoving {
		return ""
	}
	return cmp.Or(c.Status.ClusterUID, c.Annotations[v1alpha1.MovingAnnotation])
}

// annotateRecreate asks for a new Cluster in place of the one that is lost, and of no other.
func annotateRecreate(ctx context.Context, a *connect.Access, c *v1alpha1.WorkloadCluster, lost string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         c.UID,
		"annotations": map[string]any{v1alpha1.RecreateAnnotation: lost},
	}})
	if err != nil {
		return err
	}
	_, err = clusterClient(a).Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager: fieldManager,
	})
	return explainError(a, fmt.Sprintf("making cluster %q anew", c.Name), c.Name, err)
}
