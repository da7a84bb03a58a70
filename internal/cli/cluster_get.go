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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// run lists all at once: one request, however many there are.
func (q *getting) run(c *cobra.Command, a *access) error {
	all, err := q.list(c.Context(), a)
	if err != nil {
		return err
	}
	if missing := q.missing(all); len(missing) > 0 {
		if len(all) > 0 {
			err = q.print(c.OutOrStdout(), all)
		}
		return cmp.Or(err, a.missing(missing[0]))
	}
	if len(all) == 0 && q.out.forPeople() {
		_, err := fmt.Fprintln(c.ErrOrStderr(), a.noClusters())
		return err
	}
	return q.print(c.OutOrStdout(), all)
}

func (a *access) noClusters() string {
	if a.namespace == "" {
		return "There are no clusters. Make one with: " + a.globals.program + " create NAME --stack STACK"
	}
	return fmt.Sprintf("There are no clusters in namespace %s. Make one with: %s", a.namespace, a.hint("create NAME --stack STACK"))
}

func (q *getting) list(ctx context.Context, a *access) (all []unstructured.Unstructured, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	o := q.source(a).options()
	for {
		l, err := a.clusters().List(ctx, o)
		if err != nil {
			return nil, a.explain("listing clusters", err)
		}
		all = append(all, l.Items...)
		if o.Continue = l.GetContinue(); o.Continue == "" {
			break
		}
	}
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !q.wants(u.GetName()) })
	slices.SortFunc(all, func(x, y unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(x.GetNamespace(), y.GetNamespace()), strings.Compare(x.GetName(), y.GetName()))
	})
	return all, nil
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

func (q *getting) missing(all []unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(q.names), func(name string) bool {
		return slices.ContainsFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == name })
	})
}

func (q *getting) print(w io.Writer, all []unstructured.Unstructured) error {
	switch {
	case !q.out.forPeople() && len(q.names) == 1:
		return q.out.object(w, &all[0])
	case !q.out.forPeople():
		return q.out.objects(w, all)
	}
	t := clusterTable{wide: q.out.format == asWide, namespaces: q.all}
	rows := [][]string{t.header()}
	for i := range all {
		row, err := t.row(&all[i], time.Now())
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return t.print(w, rows)
}
