package kubeconfigrequest

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

// clusterState is what the plane has of the cluster of a request.
type clusterState struct {
	request         *v1alpha1.KubeconfigRequest
	workloadCluster *v1alpha1.WorkloadCluster // nil if there is none
	cluster         *clusterv1.Cluster        // nil if there is none
}

// locateChecks lists, in order, the checks before access can be given. Only the first obstacle is reported.
var locateChecks = []func(clusterState) *obstacle{
	func(v clusterState) *obstacle { return validateRequest(v.request) }, // stays until the request is made again
	checkWorkloadClusterExists,   // or it is being deleted
	checkClusterExists,           // Cluster API was not told of it yet
	checkClusterOwner,            // it may have the same name and not be the customer's
	checkControlPlaneInitialized, // it will be, and a watch reports it
	checkEndpoint,                // as above
}

// locateCluster finds the cluster of a request, and waits until it can be reached.
func (r *Reconciler) locateCluster(ctx context.Context, s *scope) error {
	v, err := r.readClusterState(ctx, s.request)
	if err != nil {
		return err
	}
	for _, check := range locateChecks {
		if err := s.stopIfBlocked(check(v)); err != nil {
			return err
		}
	}
	s.workloadCluster, s.cluster = v.workloadCluster, v.cluster
	return nil
}

// readClusterState reads the WorkloadCluster and the Cluster that a request names.
func (r *Reconciler) readClusterState(ctx context.Context, o *v1alpha1.KubeconfigRequest) (clusterState, error) {
	v := clusterState{request: o, workloadCluster: &v1alpha1.WorkloadCluster{}, cluster: &clusterv1.Cluster{}}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, v.workloadCluster); apierrors.IsNotFound(err) {
		v.workloadCluster = nil
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

// checkWorkloadClusterExists blocks if the WorkloadCluster is missing or being deleted.
func checkWorkloadClusterExists(v clusterState) *obstacle {
	name := v.request.Spec.ClusterName
	switch {
	case v.workloadCluster == nil:
		return newObstacle(v1alpha1.ReasonClusterMissing, resyncDelay,
			"there is no WorkloadCluster %s in namespace %s; create it, or make a request that names another", name,
			v.request.Namespace)
	case !v.workloadCluster.DeletionTimestamp.IsZero():
		return newObstacle(v1alpha1.ReasonClusterMissing, resyncDelay,
			"WorkloadCluster %s is being deleted, and nobody gets access to it any more", name)
	}
	return nil
}

// checkClusterExists blocks if the Cluster was not created yet.
func checkClusterExists(v clusterState) *obstacle {
	if v.cluster == nil {
		return newObstacle(v1alpha1.ReasonClusterNotReady, resyncDelay,
			"the Cluster of WorkloadCluster %s is not made yet; its conditions say what it waits for", v.workloadCluster.Name)
	}
	return nil
}

// checkClusterOwner blocks if the Cluster is not the WorkloadCluster's, or is being deleted.
func checkClusterOwner(v clusterState) *obstacle {
	switch {
	case !metav1.IsControlledBy(v.cluster, v.workloadCluster):
		return newObstacle(v1alpha1.ReasonClusterMissing, resyncDelay,
			"Cluster %s does not belong to the WorkloadCluster of this name; delete that Cluster, or give the WorkloadCluster another name", v.cluster.Name)
	case !v.cluster.DeletionTimestamp.IsZero():
		return newObstacle(v1alpha1.ReasonClusterMissing, resyncDelay,
			"Cluster %s is being deleted, and nobody gets access to it any more", v.cluster.Name)
	}
	return nil
}

// checkControlPlaneInitialized blocks until the control plane is initialized.
func checkControlPlaneInitialized(v clusterState) *obstacle {
	if !isControlPlaneInitialized(v.cluster) {
		return newObstacle(v1alpha1.ReasonClusterNotReady, resyncDelay,
			"the control plane of cluster %s is not initialized yet; the request is answered once it is", v.cluster.Name)
	}
	return nil
}

// checkEndpoint blocks until the Cluster has an endpoint that can be used.
func checkEndpoint(v clusterState) *obstacle {
	if endpointOf(v.cluster) == "" {
		return newObstacle(v1alpha1.ReasonClusterNotReady, resyncDelay,
			"cluster %s has no usable controlPlaneEndpoint yet; the request is answered once it has", v.cluster.Name)
	}
	return nil
}

// endpointOf returns the URL of the cluster's API server; "" if there is none, or if its host would make a URL that
// leads elsewhere.
func endpointOf(c *clusterv1.Cluster) string {
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
