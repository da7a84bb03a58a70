package cluster

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// newestVersion is what --version takes to follow the newest release again.
const newestVersion = "newest"

// upgradeOptions is one call of polder upgrade.
type upgradeOptions struct {
	kubernetes string
	version    string
	latest     bool
	wait       waitOptions
	summary    string
}

// newUpgradeCommand is polder upgrade.
func newUpgradeCommand(g *connect.Globals) *cobra.Command {
	q := &upgradeOptions{}
	c := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Show which newer versions a cluster can have, or take one",
		Long: `upgrade without flags shows what a cluster runs and what it could be upgraded to. Kubernetes is raised by one
minor at a time, and never lowered. A cluster without a version of its own follows the newest release of its stack.

  polder upgrade demo --kubernetes 1.37 --wait
  polder upgrade demo --version v4        stays at v4 of the stack; --version newest follows the newest again
  polder upgrade demo --to-latest         takes the next minor, or else the newest release`,
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE:              func(c *cobra.Command, args []string) error { return q.run(c, g, args[0]) },
	}
	addNamespaceFlag(c)
	c.Flags().StringVar(&q.kubernetes, "kubernetes", "", "`minor` of Kubernetes, for example 1.37")
	c.Flags().StringVar(&q.version, "version", "", "`version` of the stack's release, for example v4, or newest")
	c.Flags().BoolVar(&q.latest, "to-latest", false, "take the next minor if there is one, or else the newest release")
	q.wait.addFlags(c, "wait until the cluster is ready")
	return c
}

// run without any wish only shows updates: what a cluster becomes is for its owner to say.
func (q *upgradeOptions) run(c *cobra.Command, g *connect.Globals, name string) error {
	var err error
	if q.kubernetes, err = parseMinor(q.kubernetes); err != nil {
		return err
	}
	if q.latest && (q.kubernetes != "" || q.version != "") {
		return exit.Errorf(exit.Usage, "--to-latest chooses itself; leave out --kubernetes and --version")
	}
	a, err := g.Connect(c)
	if err != nil {
		return err
	}
	if !q.latest && q.kubernetes == "" && q.version == "" {
		cluster, err := getCluster(c.Context(), a, name)
		if err != nil {
			return err
		}
		return printUpdates(c.OutOrStdout(), cluster, a.Hint)
	}
	changed, err := patchSpec(c.Context(), a, name, q.buildPatch)
	if err != nil {
		return err
	}
	text := output.JoinNonEmpty(": ", "unchanged", q.summary)
	if changed {
		text = "is on its way to " + q.summary
	}
	if _, err := fmt.Fprintf(c.OutOrStdout(), "workloadcluster/%s %s\n", name, text); err != nil || !q.wait.enabled {
		return err
	}
	return q.wait.run(c, a, name, readyGoal, true)
}

// buildPatch writes what is chosen into the spec.
func (q *upgradeOptions) buildPatch(c *v1alpha1.WorkloadCluster, _ *unstructured.Unstructured) (map[string]any, error) {
	to, err := q.chooseUpdate(c)
	if err != nil {
		return nil, err
	}
	stack := map[string]any{}
	if to.KubernetesVersion != "" && to.KubernetesVersion != c.Spec.Stack.KubernetesVersion {
		stack["kubernetesVersion"] = to.KubernetesVersion
	}
	switch {
	case to.Version == newestVersion && c.Spec.Stack.Version != "":
		stack["version"] = nil
	case to.Version != "" && to.Version != newestVersion && to.Version != c.Spec.Stack.Version:
		stack["version"] = to.Version
	}
	if len(stack) == 0 {
		q.summary = "its spec says so already"
		if q.latest {
			q.summary = "there is nothing newer"
		}
		return nil, nil
	}
	q.summary = describeUpdate(to)
	return map[string]any{"stack": stack}, nil
}
