package workloadcluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// recordCluster writes down which Cluster is this object's. A wish for another one in place of one that was lost is
// fulfilled then.
func (r *Reconciler) recordCluster(s *scope) {
	delete(s.object.Annotations, v1alpha1.RecreateAnnotation)
	was, is := s.object.Status.ClusterUID, string(s.cluster.UID)
	if was == is {
		return
	}
	s.object.Status.ClusterUID = is
	if was != "" { // somebody has restored it, or made it by hand
		r.Events.Eventf(s.object, nil, "Warning", "ClusterReplaced", "Reconcile",
			"Cluster %s took the place of Cluster %s, which this WorkloadCluster had", is, was)
	}
}

// checkNotLost stops the run if there was a Cluster and it is gone: a new one would have the name, the access and the
// state Ready of the lost one, and nothing of what was in it. Only a person can know whether that is wanted.
func (r *Reconciler) checkNotLost(ctx context.Context, s *scope) error {
	lost := cmp.Or(s.object.Status.ClusterUID, s.object.Annotations[v1alpha1.MovingAnnotation])
	if lost == "" || s.object.Annotations[v1alpha1.RecreateAnnotation] == lost {
		s.resetStatus()
		delete(s.object.Annotations, v1alpha1.MovingAnnotation)
		return nil
	}
	c := &clusterv1.Cluster{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.object), c)
	if err == nil { // the cache does not have it yet
		s.cluster = c
		return r.checkOwner(ctx, s)
	}
	if err := apierror.IgnoreObjectNotFound(err, "clusters", s.object.Name); err != nil {
		return err
	}
	if s.object.Status.ClusterUID == "" {
		return s.awaitMoved()
	}
	next := "restore the plane from a backup; "
	if s.object.Annotations[v1alpha1.MovingAnnotation] != "" {
		next = "it was paused, as for a move: if another plane has it now, delete the WorkloadCluster here; " +
			"if not, restore the plane from a backup; "
	}
	s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonClusterLost, advice{
		s.describeLost(lost), v1alpha1.PlatformOperator,
		next + fmt.Sprintf("or, if what was in the cluster may be lost, make an empty one with: polder recreate %s -n %s",
			s.object.Name, s.object.Namespace),
	})
	return reconcile.Wait(0, "a Cluster that was lost") // the watches report its return, and the annotation
}

// describeLost says what is known of a lost Cluster.
func (s *scope) describeLost(uid string) string {
	st := &s.object.Status
	var known []string
	if st.Endpoint != "" {
		known = append(known, "endpoint "+st.Endpoint)
	}
	if st.Versions.Kubernetes != "" {
		known = append(known, "Kubernetes "+st.Versions.Kubernetes)
	}
	if st.FirstReadyTime != nil {
		known = append(known, "first ready "+st.FirstReadyTime.UTC().Format("2006-01-02 15:04 MST"))
	}
	text := fmt.Sprintf("the cluster is lost: its Cluster, UID %s, is gone, though nobody deleted the WorkloadCluster", uid)
	if len(known) > 0 {
		text += fmt.Sprintf(" (%s)", strings.Join(known, ", "))
	}
	return text
}

// resetStatus drops what is known of a Cluster that is gone: the next one begins anew.
func (s *scope) resetStatus() {
	st := &s.object.Status
	st.Endpoint, st.FirstReadyTime, st.Versions, st.Pools, st.Addons = "", nil, v1alpha1.Versions{}, nil, nil
	st.ControlPlane, st.Workers, st.ClusterUID = v1alpha1.Counts{}, v1alpha1.Counts{}, ""
}
