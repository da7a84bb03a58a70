package cli

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
	"github.com/polder-kaas/polder/internal/program/exit"
)

// getOptions is one call of polder get.
type getOptions struct {
	allNamespaces bool
	watch         bool
	out           outputFlag
	names         []string
}

func newGetCommand(g *globals) *cobra.Command {
	q := &getOptions{}
	c := &cobra.Command{
		Use:               "get [NAME...]",
		Aliases:           []string{"list", "ls"},
		Short:             "List clusters",
		ValidArgsFunction: completeClusterNames(g, 0),
		RunE: func(c *cobra.Command, args []string) error {
			q.names = args
			if q.allNamespaces && (c.Flags().Changed("namespace") || len(args) > 0) {
				return exit.Errorf(exit.Usage, "--all-namespaces goes with neither --namespace nor names; leave it out")
			}
			a, err := g.connect(c)
			if err != nil {
				return err
			}
			if q.allNamespaces {
				a.namespace = ""
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
	q.out.addFlags(c, formatTable, formatWide, formatJSON, formatYAML, formatName)
	return c
}

// run lists all at once: one request, however many there are. A table needs only what it shows, and reading no more
// than that takes a third of the time; else all there is is printed, also what this polder does not know.
func (q *getOptions) run(c *cobra.Command, a *access) error {
	if q.out.isHumanReadable() {
		return listAndPrint(c, q, a, listClusters, q.printTable)
	}
	return listAndPrint(c, q, a, listUnstructured, q.printObjects)
}

// objectPointer is what lists are of.
type objectPointer[T any] interface {
	*T
	metav1.Object
}

func listAndPrint[T any, P objectPointer[T]](c *cobra.Command, q *getOptions, a *access, list func(context.Context, *access, metav1.ListOptions) ([]T, error), print func(io.Writer, []T) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), requestTimeout)
	defer cancel()
	all, err := list(ctx, a, q.clusterSource(a).options())
	if err != nil {
		return a.explain("listing clusters", err)
	}
	all = slices.DeleteFunc(all, func(o T) bool { return !q.isSelected(P(&o).GetName()) })
	slices.SortFunc(all, func(x, y T) int {
		return cmp.Or(strings.Compare(P(&x).GetNamespace(), P(&y).GetNamespace()), strings.Compare(P(&x).GetName(), P(&y).GetName()))
	})
	for _, name := range q.names {
		if slices.ContainsFunc(all, func(o T) bool { return P(&o).GetName() == name }) {
			continue
		}
		if len(all) > 0 {
			err = print(c.OutOrStdout(), all)
		}
		return cmp.Or(err, clusterNotFound(a, name))
	}
	if len(all) == 0 && q.out.isHumanReadable() {
		_, err := fmt.Fprintln(c.ErrOrStderr(), describeNoClusters(a))
		return err
	}
	return print(c.OutOrStdout(), all)
}

func describeNoClusters(a *access) string {
	if a.namespace == "" {
		return "There are no clusters. Make one with: " + a.globals.program + " create NAME --stack STACK"
	}
	return fmt.Sprintf("There are no clusters in namespace %s. Make one with: %s", a.namespace, a.hint("create NAME --stack STACK"))
}

// clusterSource asks for one by its name, and for several by looking at all.
func (q *getOptions) clusterSource(a *access) planeSource {
	s := planeSource{objects: clusterClient(a)}
	if len(q.names) == 1 {
		s.name = q.names[0]
	}
	return s
}

func (q *getOptions) isSelected(name string) bool {
	return len(q.names) == 0 || slices.Contains(q.names, name)
}

func (q *getOptions) printObjects(w io.Writer, all []unstructured.Unstructured) error {
	if len(q.names) == 1 {
		return q.out.printObject(w, &all[0])
	}
	return q.out.printObjects(w, all)
}

func (q *getOptions) printTable(w io.Writer, all []v1alpha1.WorkloadCluster) error {
	t := clusterTable{wide: q.out.format == formatWide, namespaces: q.allNamespaces}
	rows := [][]string{t.header()}
	for i := range all {
		rows = append(rows, t.row(&all[i], time.Now()))
	}
	return t.print(w, rows)
}
