package access

import (
	"context"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// maxEndpoint is how long a URL in a status may be.
const maxEndpoint = 512

// view is what the plane knows of the cluster of a request.
type view struct {
	request *v1alpha1.KubeconfigRequest
	owner   *v1alpha1.WorkloadCluster // nil: there is none
	cluster *clusterv1.Cluster        // nil: there is none
}

// notLocated lists, in order, why there is nobody to give access to; the first is the one people see.
var notLocated = []func(view) *obstacle{
	func(v view) *obstacle { return wrong(v.request) }, // for good
	ownerMissing,   // or on its way out
	clusterMissing, // Cluster API was not told of it yet
	clusterForeign, // of the same name, and not the customer's
	notInitialized, // it will be, and a watch tells
	noEndpoint,     // as above
}

// located finds the cluster of a request, and waits until it can be reached.
func (r *Reconciler) located(ctx context.Context, s *scope) error {
	v, err := r.look(ctx, s.request)
	if err != nil {
		return err
	}
	for _, check := range notLocated {
		if err := s.stop(check(v)); err != nil {
			return err
		}
	}
	s.owner, s.cluster = v.owner, v.cluster
	return nil
}

func (r *Reconciler) look(ctx context.Context, o *v1alpha1.KubeconfigRequest) (view, error) {
	v := view{request: o, owner: &v1alpha1.WorkloadCluster{}, cluster: &clusterv1.Cluster{}}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, v.owner); apierrors.IsNotFound(err) {
		v.owner = nil
	} else if err != nil {
		return v, fmt.Errorf("reading WorkloadCluster %s: %w", key, err)
	}
	if err := r.Client.Get(ctx, key, v.cluster); apierrors.IsNotFound(err) {
		v.cluster = nil
	} else if err != nil {
		return v, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	return v, nil
}

func ownerMissing(v view) *obstacle {
	name := v.request.Spec.ClusterName
	switch {
	case v.owner == nil:
		return hurdle(v1alpha1.ReasonClusterMissing, slowly, "there is no WorkloadCluster %s in namespace %s; create it, or make a request that names another", name, v.request.Namespace)
	case !v.owner.DeletionTimestamp.IsZero():
		return hurdle(v1alpha1.ReasonClusterMissing, slowly, "WorkloadCluster %s is being deleted, and nobody gets access to it any more", name)
	}
	return nil
}

func clusterMissing(v view) *obstacle {
	if v.cluster == nil {
		return hurdle(v1alpha1.ReasonClusterNotReady, slowly, "the Cluster of WorkloadCluster %s is not made yet; its conditions say what it waits for", v.owner.Name)
	}
	return nil
}

func clusterForeign(v view) *obstacle {
	switch {
	case !metav1.IsControlledBy(v.cluster, v.owner):
		return hurdle(v1alpha1.ReasonClusterMissing, slowly, "Cluster %s does not belong to the WorkloadCluster of this name; delete that Cluster, or give the WorkloadCluster another name", v.cluster.Name)
	case !v.cluster.DeletionTimestamp.IsZero():
		return hurdle(v1alpha1.ReasonClusterMissing, slowly, "Cluster %s is being deleted, and nobody gets access to it any more", v.cluster.Name)
	}
	return nil
}

func notInitialized(v view) *obstacle {
	if !initialized(v.cluster) {
		return hurdle(v1alpha1.ReasonClusterNotReady, slowly, "the control plane of cluster %s is not initialized yet; the request is answered once it is", v.cluster.Name)
	}
	return nil
}

func noEndpoint(v view) *obstacle {
	if endpoint(v.cluster) == "" {
		return hurdle(v1alpha1.ReasonClusterNotReady, slowly, "cluster %s has no usable controlPlaneEndpoint yet; the request is answered once it has", v.cluster.Name)
	}
	return nil
}

// endpoint is the URL of the cluster's API; empty: there is none, or it would lead elsewhere.
func endpoint(c *clusterv1.Cluster) string {
	e := c.Spec.ControlPlaneEndpoint
	if !e.IsValid() {
		return ""
	}
	out := url.URL{Scheme: "https", Host: e.String()}
	back, err := url.Parse("https://" + e.String())
	if err != nil || back.String() != out.String() || len(out.String()) > maxEndpoint {
		return ""
	}
	return out.String()
}
