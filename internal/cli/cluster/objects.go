package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// fieldManager is whose fields are those that polder writes.
const fieldManager = "polder"

// Resources of the kinds that customers use.
var (
	clusterResource  = v1alpha1.GroupVersion.WithResource("workloadclusters")
	requestResource  = v1alpha1.GroupVersion.WithResource("kubeconfigrequests")
	providerResource = v1alpha1.GroupVersion.WithResource("providers")
)

// clusterClient are those of the namespace.
func clusterClient(a *connect.Access) dynamic.ResourceInterface {
	return a.Client.Resource(clusterResource).Namespace(a.Namespace)
}

// listUnstructured reads clusters with all they have. Without a limit, an API server answers in one piece.
func listUnstructured(ctx context.Context, a *connect.Access,
	o metav1.ListOptions) ([]unstructured.Unstructured, error) {
	l, err := clusterClient(a).List(ctx, o)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// listClusters reads what this polder knows of clusters.
func listClusters(ctx context.Context, a *connect.Access, o metav1.ListOptions) ([]v1alpha1.WorkloadCluster, error) {
	r := a.RESTClient.Get().Resource(clusterResource.Resource).NamespaceIfScoped(a.Namespace, a.Namespace != "")
	if o.FieldSelector != "" {
		r.Param("fieldSelector", o.FieldSelector)
	}
	answer := r.Do(ctx)
	b, err := answer.Raw()
	if err != nil {
		return nil, answer.Error() // which says what the plane said
	}
	var l v1alpha1.WorkloadClusterList
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return l.Items, nil
}

// getCluster reads one. A name that nobody has is a sentence that helps.
func getCluster(ctx context.Context, a *connect.Access, name string) (*v1alpha1.WorkloadCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := clusterClient(a).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explainError(a, fmt.Sprintf("reading cluster %q", name), name, err)
	}
	return objects.FromUnstructured[v1alpha1.WorkloadCluster](u)
}

// explainError also knows that the cluster may not be there.
func explainError(a *connect.Access, doing, name string, err error) error {
	if apierror.IsObjectNotFound(err, clusterResource.Resource, name) {
		return notFoundError(a, name)
	}
	return a.Explain(doing, err)
}

// preferNotFound says that a cluster is not there, if that is why something failed.
func preferNotFound(ctx context.Context, a *connect.Access, name string, failed error) error {
	if _, err := getCluster(ctx, a, name); exit.Code(err) == exit.Usage {
		return err
	}
	return failed
}

// notFoundError names the namespace: that it is another than was meant is the usual reason.
func notFoundError(a *connect.Access, name string) error {
	return exit.Errorf(exit.Usage, "there is no cluster %q in namespace %s; see which there are with: %s", name,
		a.Namespace, a.Hint("get"))
}

// getProvider reads what a provider says of itself.
func getProvider(ctx context.Context, a *connect.Access, name string) (*v1alpha1.Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := a.Client.Resource(providerResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return objects.FromUnstructured[v1alpha1.Provider](u)
}
