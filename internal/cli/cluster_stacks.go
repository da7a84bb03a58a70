package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/version"
)

func newStacksCommand(g *globals) *cobra.Command {
	var everywhere bool
	var out outputFlag
	c := &cobra.Command{
		Use:   "stacks",
		Short: "Show which stacks clusters can be made of here",
		Long: `stacks shows the stacks of the namespace and of the catalogue, which all namespaces may use. STACK and KUBERNETES are
what polder create takes as --stack and --kubernetes. What is behind one that is not ready, polder stack status says.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if everywhere && c.Flags().Changed("namespace") {
				return exit.Errorf(exit.Usage, "--namespace and --all-namespaces contradict each other; give one of them")
			}
			a, err := g.connect(c)
			if err != nil {
				return err
			}
			namespaces := []string{a.namespace, v1alpha1.CatalogueNamespace}
			if everywhere {
				namespaces = []string{""}
			}
			all, problems := listStacks(c.Context(), a, namespaces...)
			if len(all) == 0 && len(problems) > 0 {
				return problems[0]
			}
			for _, p := range problems {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", p)
			}
			return printStacks(c, a, all, &out)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "stacks of all namespaces")
	out.addFlags(c, formatTable, formatJSON, formatYAML, formatName)
	return c
}

// listStacks are those of some namespaces, in order. What cannot be read of one does not keep the others back.
func listStacks(ctx context.Context, a *access, namespaces ...string) (all []csv1.ClusterStack, problems []error) {
	for _, ns := range slices.Compact(namespaces) {
		l, err := listObjects[csv1.ClusterStack](ctx, a, csv1.GroupVersion.WithResource("clusterstacks"), ns, metav1.ListOptions{})
		if err != nil {
			problems = append(problems, a.explain("listing stacks", err))
		}
		all = append(all, l...)
	}
	slices.SortFunc(all, func(x, y csv1.ClusterStack) int {
		return cmp.Or(strings.Compare(x.Spec.Provider, y.Spec.Provider), strings.Compare(x.Spec.Name, y.Spec.Name), compareMinors(x.Spec.KubernetesVersion, y.Spec.KubernetesVersion),
			strings.Compare(string(x.Spec.Channel), string(y.Spec.Channel)), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return all, problems
}

// compareMinors has 1.9 before 1.10.
func compareMinors(a, b string) int {
	x, badX := version.ParseKubernetes(a)
	y, badY := version.ParseKubernetes(b)
	if badX != nil || badY != nil {
		return strings.Compare(a, b)
	}
	return version.CompareKubernetes(x, y)
}

func printStacks(c *cobra.Command, a *access, all []csv1.ClusterStack, out *outputFlag) error {
	if !out.isHumanReadable() {
		var items []unstructured.Unstructured
		for _, s := range all {
			u, err := toUnstructured(s)
			if err != nil {
				return err
			}
			items = append(items, *u)
		}
		return out.printObjects(c.OutOrStdout(), items)
	}
	if len(all) == 0 {
		how := ""
		if a.local {
			how = "; how, says: " + a.hint("stack status")
		}
		_, err := fmt.Fprintf(c.ErrOrStderr(), "There is no stack for namespace %s. Whoever runs the plane adds one%s\n", a.namespace, cmp.Or(how, "."))
		return err
	}
	rows := [][]string{{"PROVIDER", "STACK", "KUBERNETES", "CHANNEL", "NEWEST", "READY", "NAMESPACE"}}
	for _, s := range all {
		rows = append(rows, []string{s.Spec.Provider, s.Spec.Name, s.Spec.KubernetesVersion, cmp.Or(string(s.Spec.Channel), string(csv1.ChannelStable)), newestReleaseOf(s), readyStatus(s.Status.Conditions), s.Namespace})
	}
	return (&clusterTable{}).print(c.OutOrStdout(), rows)
}

// newestReleaseOf is the version of the newest release, with its version of Kubernetes, of "NAME | KUBERNETES".
func newestReleaseOf(s csv1.ClusterStack) string {
	if s.Status.LatestRelease == nil {
		return ""
	}
	name, kubernetes, _ := strings.Cut(*s.Status.LatestRelease, " | ")
	if r, err := version.ParseReleaseName(name); err == nil {
		name = r.Version.String()
	}
	return joinNonEmpty(" ", name, parenthesize(kubernetes))
}
