package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/restplane"
	"github.com/polder-kaas/polder/internal/front/planepath"
)

// listMachines are those that Cluster API made. Who has no right to its kinds is told as much as members of the
// namespace's tenant may know, or that he may not see machines.
func listMachines(ctx context.Context, a *connect.Access,
	name string) (all []clusterv1.Machine, noMachinesReason string, err error) {
	all, err = objects.List[clusterv1.Machine](ctx, a, clusterv1.GroupVersion.WithResource("machines"), a.Namespace,
		metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel + "=" + name})
	if apierrors.IsForbidden(err) && !a.IsREST {
		all, err = listMachinesOfMember(ctx, a, name)
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, "you may not see machines in this namespace", nil
	case apierrors.IsNotFound(err):
		return nil, "the plane has no machines of Cluster API", nil
	}
	return all, "", a.Explain("listing machines", err)
}

// listMachinesOfMember asks the plane for the machines of a cluster of a tenant that the caller belongs to.
func listMachinesOfMember(ctx context.Context, a *connect.Access, cluster string) (all []clusterv1.Machine, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	forbidden := apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "", nil)
	tenants, err := readPages[v1alpha1.Tenant](ctx, a, planepath.Tenants)
	if err != nil {
		return nil, forbidden // an older plane has no such path
	}
	for i := range tenants {
		if tenants[i].NamespaceName() != a.Namespace {
			continue
		}
		machines, err := readPages[client.Machine](ctx, a, planepath.Machines+tenants[i].Name+"/"+cluster)
		if apierrors.IsNotFound(err) {
			continue // the namespace is another tenant's
		}
		for j := range machines {
			all = append(all, *restplane.NewMachine(a.Namespace, cluster, &machines[j]))
		}
		return all, err
	}
	return nil, forbidden
}

// readPages reads all parts of a list at a path of the plane that Kubernetes does not have.
func readPages[T any](ctx context.Context, a *connect.Access, path string) (all []T, err error) {
	for token := ""; ; {
		b, err := a.RESTClient.Get().AbsPath(path).Param("continue", token).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var page struct {
			Items    []T    `json:"items"`
			Continue string `json:"continue"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, fmt.Errorf("the answer cannot be read: %w", err)
		}
		all = append(all, page.Items...)
		if token = page.Continue; token == "" {
			return all, nil
		}
	}
}
