// Package stackstatus has polder stack status: how stacks are, who uses them, and what to do next.
package stackstatus

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/suggest"
)

// NewCommand is polder stack status. It reads the plane of the data directory as its administrator, and ends with
// exit.NotReady if something it shows is not ready.
func NewCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	var s selection
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Say how the stacks in the plane are, who uses them, and what to do next",
		Long: fmt.Sprintf(`status shows the ClusterStacks of the plane, their releases, the clusters that use these, in whatever
namespace, and the stages of add-ons of those clusters that are not ready. Below that, it says for each
problem what to do and who must do it. NAME is a ClusterStack, or NAMESPACE/NAME.
It exits with 0 if all it shows is ready and with %d if something is not, or if there is no ClusterStack.`,
			exit.NotReady),
		Args:              cmdline.Args(0, 1, "at most the name of a ClusterStack"),
		ValidArgsFunction: completeStacks(g, &s),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.parseArgs(args); err != nil {
				return err
			}
			p, err := newPlaneReader(g)
			if err != nil {
				return err
			}
			s.setDefaultNamespace(p.namespace)
			w, err := p.readObjects(c.Context())
			if err != nil {
				return err
			}
			r := w.buildReport(s, g.KubectlHint())
			switch {
			case s.Name != "" && len(r.Stacks) == 0:
				return w.notFoundError(s)
			case out.IsStructured():
				err = out.Print(c.OutOrStdout(), r)
			case r.isEmpty():
				_, err = io.WriteString(c.ErrOrStderr(), w.firstStackHint(s, g))
			default:
				lines := append(treeLines(r, g.Now()), nextStepLines(r.Next)...)
				_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(lines, "\n"))
			}
			if err == nil && !r.Ready {
				return exit.With(exit.NotReady, output.ErrSilent)
			}
			return err
		},
	}
	out.AddFlags(c)
	c.Flags().StringVarP(&s.Namespace, "namespace", "n", "",
		"`namespace` of the ClusterStacks (default: that of the kubeconfig)")
	c.Flags().BoolVarP(&s.All, "all-namespaces", "A", false, "the ClusterStacks of all namespaces")
	return c
}

// notFoundError is one sentence that helps to find the stack that was meant.
func (w objectSet) notFoundError(s selection) error {
	var names []string
	for _, c := range w.sortedStacks() {
		if s.hasNamespace(c.Namespace) {
			names = append(names, c.Namespace+"/"+c.Name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return exit.Errorf(exit.Usage, "there is no ClusterStack %q in %s, and no other", s.Name, s.describeNamespace())
	case n > suggest.Max:
		return exit.Errorf(exit.Usage, "there is no ClusterStack %q in %s; leave out the name to see all %d", s.Name,
			s.describeNamespace(), n)
	}
	return exit.Errorf(exit.Usage, "there is no ClusterStack %q in %s; choose from: %s", s.Name, s.describeNamespace(),
		strings.Join(names, ", "))
}

// firstStackHint says how to make a stack where there is none.
func (w objectSet) firstStackHint(s selection, g *connect.Globals) string {
	namespace, elsewhere := s.Namespace, ""
	if s.All {
		namespace = "default"
	}
	if n := len(w.stacks); n > 0 {
		elsewhere = fmt.Sprintf(" (%d elsewhere; see: %s)", n, g.Hint("stack status -A"))
	}
	return fmt.Sprintf(`There is no ClusterStack in %s%s. One keeps the newest release of a stack ready for clusters; make it with:

%s apply -f - <<EOF
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStack
metadata: {name: scs, namespace: %s}
spec:
  provider: local
  name: scs
  kubernetesVersion: "1.36"
  # source: {oci: "oci://registry.example.org/stacks"}   # without it, that of polderd's --stack-source
EOF
`, s.describeNamespace(), elsewhere, g.KubectlHint(), namespace)
}
