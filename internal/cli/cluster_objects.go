package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
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
func clusterClient(a *access) dynamic.ResourceInterface {
	return a.client.Resource(clusterResource).Namespace(a.namespace)
}

// listUnstructured reads clusters with all they have. Without a limit, an API server answers in one piece.
func listUnstructured(ctx context.Context, a *access, o metav1.ListOptions) ([]unstructured.Unstructured, error) {
	l, err := clusterClient(a).List(ctx, o)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// listClusters reads what this polder knows of clusters.
func listClusters(ctx context.Context, a *access, o metav1.ListOptions) ([]v1alpha1.WorkloadCluster, error) {
	r := a.restClient.Get().Resource(clusterResource.Resource).NamespaceIfScoped(a.namespace, a.namespace != "")
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
func getCluster(ctx context.Context, a *access, name string) (*v1alpha1.WorkloadCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := clusterClient(a).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explainClusterError(a, fmt.Sprintf("reading cluster %q", name), name, err)
	}
	return fromUnstructured[v1alpha1.WorkloadCluster](u)
}

// explainClusterError also knows that the cluster may not be there.
func explainClusterError(a *access, doing, name string, err error) error {
	if apierror.IsObjectNotFound(err, clusterResource.Resource, name) {
		return clusterNotFound(a, name)
	}
	return a.explain(doing, err)
}

// preferClusterNotFound says that a cluster is not there, if that is why something failed.
func preferClusterNotFound(ctx context.Context, a *access, name string, failed error) error {
	if _, err := getCluster(ctx, a, name); exit.Code(err) == exit.Usage {
		return err
	}
	return failed
}

func clusterNotFound(a *access, name string) error {
	return exit.Errorf(exit.Usage, "there is no cluster %q in namespace %s; see which there are with: %s", name, a.namespace, a.hint("get"))
}

// getProvider reads what a provider says of itself.
func getProvider(ctx context.Context, a *access, name string) (*v1alpha1.Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := a.client.Resource(providerResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return fromUnstructured[v1alpha1.Provider](u)
}

// listObjects reads all objects of a kind, of a namespace or, if that is empty, of all.
func listObjects[T any](ctx context.Context, a *access, kind schema.GroupVersionResource, namespace string, o metav1.ListOptions) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var items []T
	for {
		l, err := a.client.Resource(kind).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range l.Items {
			item, err := fromUnstructured[T](&l.Items[i])
			if err != nil {
				return nil, err
			}
			items = append(items, *item)
		}
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return items, nil
		}
	}
}

// fromUnstructured takes what it knows: a plane that is newer may have more. Who has written which field is left out: nobody here
// asks, and it is the larger part of the work.
func fromUnstructured[T any](u *unstructured.Unstructured) (*T, error) {
	var item T
	u = &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if m, ok := u.Object["metadata"].(map[string]any); ok && m["managedFields"] != nil {
		m = maps.Clone(m)
		delete(m, "managedFields")
		u.Object["metadata"] = m
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &item); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", u.GetKind(), u.GetName(), err)
	}
	return &item, nil
}

// toUnstructured leaves out what is empty, as the type says.
func toUnstructured(v any) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(b)
}
