package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// getOptions is one call of polder get.
type getOptions struct {
	allNamespaces bool
	watch         bool
	out           output.Flag
	names         []string
}

// newGetCommand is polder get.
func newGetCommand(g *connect.Globals) *cobra.Command {
	q := &getOptions{}
	c := &cobra.Command{
		Use:               "get [NAME...]",
		Aliases:           []string{"list", "ls"},
		Short:             "List clusters",
		ValidArgsFunction: completeNames(g, 0),
		RunE: func(c *cobra.Command, args []string) error {
			q.names = args
			if q.allNamespaces && (c.Flags().Changed("namespace") || len(args) > 0) {
				return exit.Errorf(exit.Usage, "--all-namespaces goes with neither --namespace nor names; leave it out")
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			if q.allNamespaces {
				a.Namespace = ""
			}
			if q.watch {
				return q.watchAndPrint(c, a)
			}
			return q.run(c, a)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&q.allNamespaces, "all-namespaces", "A", false, "clusters of all namespaces")
	c.Flags().BoolVarP(&q.watch, "watch", "w", false, "go on, with a line for each change, until interrupted")
	q.out.AddFlags(c, output.FormatTable, output.FormatWide, output.FormatJSON, output.FormatYAML, output.FormatName)
	return c
}

// run lists all at once: one request, however many there are. A table needs only what it shows, and reading no more
// than that takes a third of the time; else all there is is printed, also what this polder does not know.
func (q *getOptions) run(c *cobra.Command, a *connect.Access) error {
	if q.out.IsHumanReadable() {
		return listAndPrint(c, q, a, listClusters, func(w io.Writer, all []v1alpha1.WorkloadCluster) error {
			return q.printTable(w, all, a.Globals.Now())
		})
	}
	return listAndPrint(c, q, a, listUnstructured, q.printObjects)
}

// objectPointer is what lists are of.
type objectPointer[T any] interface {
	*T
	metav1.Object
}

// listAndPrint prints what was found before it complains about a name that was not, as kubectl does.
func listAndPrint[T any, P objectPointer[T]](c *cobra.Command, q *getOptions, a *connect.Access,
	list func(context.Context, *connect.Access, metav1.ListOptions) ([]T, error), print func(io.Writer, []T) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), connect.RequestTimeout)
	defer cancel()
	all, err := list(ctx, a, q.newSource(a).Options())
	if err != nil {
		return a.Explain("listing clusters", err)
	}
	all = slices.DeleteFunc(all, func(o T) bool { return !q.isSelected(P(&o).GetName()) })
	slices.SortFunc(all, func(x, y T) int {
		return cmp.Or(strings.Compare(P(&x).GetNamespace(), P(&y).GetNamespace()),
			strings.Compare(P(&x).GetName(), P(&y).GetName()))
	})
	for _, name := range q.names {
		if slices.ContainsFunc(all, func(o T) bool { return P(&o).GetName() == name }) {
			continue
		}
		if len(all) > 0 {
			err = print(c.OutOrStdout(), all)
		}
		return cmp.Or(err, notFoundError(a, name))
	}
	if len(all) == 0 && q.out.IsHumanReadable() {
		_, err := fmt.Fprintln(c.ErrOrStderr(), describeNoClusters(a))
		return err
	}
	return print(c.OutOrStdout(), all)
}

// describeNoClusters says how to make one: who sees an empty list has probably just begun.
func describeNoClusters(a *connect.Access) string {
	if a.Namespace == "" {
		return "There are no clusters. Make one with: " + a.Globals.Program + " create NAME --stack STACK"
	}
	return fmt.Sprintf("There are no clusters in namespace %s. Make one with: %s", a.Namespace,
		a.Hint("create NAME --stack STACK"))
}

// newSource asks for one by its name, and for several by looking at all.
func (q *getOptions) newSource(a *connect.Access) follow.PlaneSource {
	s := follow.PlaneSource{Objects: clusterClient(a)}
	if len(q.names) == 1 {
		s.Name = q.names[0]
	}
	return s
}

// isSelected takes everything where no names are given.
func (q *getOptions) isSelected(name string) bool {
	return len(q.names) == 0 || slices.Contains(q.names, name)
}

// printObjects prints one object bare, for scripts that asked for one name, and a List otherwise.
func (q *getOptions) printObjects(w io.Writer, all []unstructured.Unstructured) error {
	if len(q.names) == 1 {
		return q.out.PrintObject(w, &all[0])
	}
	return q.out.PrintObjects(w, all)
}

// printTable prints for people: a line for each cluster.
func (q *getOptions) printTable(w io.Writer, all []v1alpha1.WorkloadCluster, now time.Time) error {
	t := table{wide: q.out.Format == output.FormatWide, namespaces: q.allNamespaces}
	rows := [][]string{t.header()}
	for i := range all {
		rows = append(rows, t.row(&all[i], now))
	}
	return t.print(w, rows)
}
