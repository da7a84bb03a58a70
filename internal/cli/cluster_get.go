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
	"github.com/polder-kaas/polder/internal/exit"
)

// getting is one call of polder get.
type getting struct {
	all   bool
	watch bool
	out   output
	names []string
}

func clusterGet(g *globals) *cobra.Command {
	q := &getting{}
	c := &cobra.Command{
		Use:               "get [NAME...]",
		Aliases:           []string{"list", "ls"},
		Short:             "List clusters",
		ValidArgsFunction: g.completeNames(0),
		RunE: func(c *cobra.Command, args []string) error {
			q.names = args
			if q.all && (c.Flags().Changed("namespace") || len(args) > 0) {
				return exit.Errorf(exit.Usage, "--all-namespaces goes with neither --namespace nor names; leave it out")
			}
			a, err := g.connect(c)
			if err != nil {
				return err
			}
			if q.all {
				a.namespace = ""
			}
			if q.watch {
				return q.follow(c, a)
			}
			return q.run(c, a)
		},
	}
	namespaceFlag(c)
	c.Flags().BoolVarP(&q.all, "all-namespaces", "A", false, "clusters of all namespaces")
	c.Flags().BoolVarP(&q.watch, "watch", "w", false, "go on, with a line for each change, until interrupted")
	q.out.addTo(c, table, asWide, asJSON, asYAML, asName)
	return c
}

// run lists all at once: one request, however many there are. A table needs only what it shows, and reading no more
// than that takes a third of the time; else all there is is printed, also what this polder does not know.
func (q *getting) run(c *cobra.Command, a *access) error {
	if q.out.forPeople() {
		return show(c, q, a, a.listTyped, q.table)
	}
	return show(c, q, a, a.list, q.objects)
}

// object is what lists are of.
type object[T any] interface {
	*T
	metav1.Object
}

func show[T any, P object[T]](c *cobra.Command, q *getting, a *access, list func(context.Context, metav1.ListOptions) ([]T, error), print func(io.Writer, []T) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), answerWithin)
	defer cancel()
	all, err := list(ctx, q.source(a).options())
	if err != nil {
		return a.explain("listing clusters", err)
	}
	all = slices.DeleteFunc(all, func(o T) bool { return !q.wants(P(&o).GetName()) })
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
		return cmp.Or(err, a.missing(name))
	}
	if len(all) == 0 && q.out.forPeople() {
		_, err := fmt.Fprintln(c.ErrOrStderr(), a.noClusters())
		return err
	}
	return print(c.OutOrStdout(), all)
}

func (a *access) noClusters() string {
	if a.namespace == "" {
		return "There are no clusters. Make one with: " + a.globals.program + " create NAME --stack STACK"
	}
	return fmt.Sprintf("There are no clusters in namespace %s. Make one with: %s", a.namespace, a.hint("create NAME --stack STACK"))
}

// source asks for one by its name, and for several by looking at all.
func (q *getting) source(a *access) planeSource {
	s := planeSource{objects: a.clusters()}
	if len(q.names) == 1 {
		s.only = q.names[0]
	}
	return s
}

func (q *getting) wants(name string) bool { return len(q.names) == 0 || slices.Contains(q.names, name) }

func (q *getting) objects(w io.Writer, all []unstructured.Unstructured) error {
	if len(q.names) == 1 {
		return q.out.object(w, &all[0])
	}
	return q.out.objects(w, all)
}

func (q *getting) table(w io.Writer, all []v1alpha1.WorkloadCluster) error {
	t := clusterTable{wide: q.out.format == asWide, namespaces: q.all}
	rows := [][]string{t.header()}
	for i := range all {
		rows = append(rows, t.row(&all[i], time.Now()))
	}
	return t.print(w, rows)
}
