package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// deleteOptions is one call of polder delete.
type deleteOptions struct {
	yes        bool
	wait       waitOptions
	isTerminal func(io.Reader) bool
}

// newDeleteCommand is polder delete.
func newDeleteCommand(g *connect.Globals) *cobra.Command {
	return newDeleteCommandAsking(g, isTerminal)
}

// isTerminal says whether there is somebody to ask: a pipe would answer with the next line of something else.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newDeleteCommandAsking takes isTerminal, since a test has no terminal.
func newDeleteCommandAsking(g *connect.Globals, isTerminal func(io.Reader) bool) *cobra.Command {
	d := &deleteOptions{isTerminal: isTerminal}
	c := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete clusters, with all that is in them",
		Long: `delete asks for each cluster, by having its name typed, and deletes all of it: machines, volumes and what runs
there. Where there is nobody to ask, --yes is needed. A cluster with deletionProtection is not deleted.`,
		ValidArgsFunction: completeNames(g, 0),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Errorf(exit.Usage, "%s takes the names of clusters, but got none; see: %s --help", c.CommandPath(),
					c.CommandPath())
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			return d.run(c, a, args)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	d.wait.addFlags(c, "wait until all of it is gone")
	return c
}

// run reads all clusters, and asks about all, before it deletes one: a mistyped name changes nothing.
func (d *deleteOptions) run(c *cobra.Command, a *connect.Access, names []string) error {
	if !d.yes && !d.isTerminal(c.InOrStdin()) {
		return exit.Errorf(exit.Usage, "delete asks before it deletes, and here is nobody to ask; say --yes")
	}
	var all []*v1alpha1.WorkloadCluster
	for _, name := range names {
		cluster, err := getCluster(c.Context(), a, name)
		if err != nil {
			return err
		}
		all = append(all, cluster)
	}
	// One reader for all questions: it reads ahead, and what it holds would be lost with it.
	in := bufio.NewReader(c.InOrStdin())
	for _, cluster := range all {
		if d.yes {
			break
		}
		q := question{toDo: "delete it", notDone: "was not deleted"}
		if err := q.ask(c.Context(), in, c.ErrOrStderr(), cluster, a.Globals.Now()); err != nil {
			return err
		}
	}
	// What cannot be deleted stops none of the others.
	var errs []error
	var leaving []*v1alpha1.WorkloadCluster
	for _, cluster := range all {
		if err := deleteCluster(c.Context(), a, cluster); err != nil {
			errs = append(errs, err)
			continue
		}
		leaving = append(leaving, cluster)
		if _, err := fmt.Fprintf(c.OutOrStdout(), "workloadcluster/%s is being deleted\n", cluster.Name); err != nil {
			return err
		}
	}
	if d.wait.enabled {
		errs = append(errs, d.waitForAll(c, a, leaving)...)
	}
	return joinErrors(errs)
}

// waitForAll waits for one after the other; after an interruption for none.
func (d *deleteOptions) waitForAll(c *cobra.Command, a *connect.Access,
	all []*v1alpha1.WorkloadCluster) (errs []error) {
	d.wait.named = len(all) > 1
	for _, cluster := range all {
		// By UID, since a cluster of the same name may have been made meanwhile.
		if err := d.wait.run(c, a, cluster.Name, goal{deleted: true, uid: cluster.UID}, true); err != nil {
			errs = append(errs, err)
		}
		if c.Context().Err() != nil {
			break
		}
	}
	return errs
}

// joinErrors is one error with the code of the first.
func joinErrors(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return exit.With(exit.Code(errs[0]), errors.Join(errs...))
}

// machineCount is what is wanted, as the status or else the spec says.
func machineCount(c *v1alpha1.WorkloadCluster) string {
	n := valueOrZero(c.Spec.ControlPlane.Replicas)
	for _, p := range c.Spec.Workers {
		n += valueOrZero(p.Replicas)
	}
	if c.Status.ControlPlane.Desired != nil {
		n = valueOrZero(c.Status.ControlPlane.Desired) + valueOrZero(c.Status.Workers.Desired)
	}
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprintf("%d machines", n)
}

// deleteCluster deletes this very cluster, and no other that has got its name meanwhile.
func deleteCluster(ctx context.Context, a *connect.Access, c *v1alpha1.WorkloadCluster) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	err := clusterClient(a).Delete(ctx, c.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(c.UID)),
	})
	if apierror.IgnoreObjectNotFound(err, clusterResource.Resource, c.Name) == nil {
		return nil
	}
	explained := a.Explain(fmt.Sprintf("deleting cluster %q", c.Name), err)
	if ptr.Deref(c.Spec.DeletionProtection, false) &&
		(apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		if a.IsREST {
			return exit.Errorf(exit.Code(explained),
				"%w; if you mean it, lift the protection with deletionProtection: false in the cluster's file, and: %s", explained,
				a.Hint("apply -f FILE"))
		}
		return exit.Errorf(exit.Code(explained),
			`%w; if you mean it, lift the protection with: %s patch workloadcluster %s -n %s --type merge -p '{"spec":{"deletionProtection":false}}'`, explained, a.KubectlHint(), c.Name, a.Namespace)
	}
	return explained
}
