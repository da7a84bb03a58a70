package cluster

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// resolveNamespace finds the namespace of a cluster: that of its file, of -n, or of the kubeconfig.
func resolveNamespace(a *connect.Access, c *cobra.Command, cluster *v1alpha1.WorkloadCluster) error {
	if given := c.Flag("namespace").Value.String(); given != "" && cluster.Namespace != "" && given != cluster.Namespace {
		return exit.Errorf(exit.Usage, "the file says namespace %s, and -n says %s; leave out one of them", cluster.Namespace,
			given)
	}
	a.Namespace = cmp.Or(cluster.Namespace, a.Namespace)
	cluster.Namespace = a.Namespace
	return nil
}

// moveToProvider makes the cluster one of the provider that is named, and says what that means.
func (n *createOptions) moveToProvider(c *cobra.Command, a *connect.Access, cluster *v1alpha1.WorkloadCluster) error {
	to, err := getProvider(c.Context(), a, n.flags.provider)
	if apierror.IsObjectNotFound(err, providerResource.Resource, n.flags.provider) {
		return exit.Errorf(exit.Usage, "there is no provider %q; see which there are with: %s", n.flags.provider,
			a.Hint("providers"))
	}
	if err != nil {
		return a.Explain(fmt.Sprintf("reading provider %q", n.flags.provider), err)
	}
	var from *v1alpha1.Provider
	if cluster.Spec.Provider != "" {
		if from, err = getProvider(c.Context(), a, cluster.Spec.Provider); err != nil {
			from = nil // the file may be from another plane
		}
	}
	m := moveCluster(cluster, from, to)
	stacks, problems := objects.ListStacks(c.Context(), a, a.Namespace, v1alpha1.CatalogueNamespace)
	if len(problems) == 0 { // who may not read them is told nothing of them
		m.reviewStack(cluster, to, stacks)
	}
	m.print(c.ErrOrStderr(), cluster.Name)
	return m.err(n.force)
}
