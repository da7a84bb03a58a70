package workloadcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// refusedRetry is how soon a refused write is tried again, even if nothing seems to have changed.
const refusedRetry = time.Minute

// unpause lets Cluster API go on: it deletes nothing of a Cluster that is paused.
func (r *Reconciler) unpause(ctx context.Context, c *clusterv1.Cluster) error {
	if !ptr.Deref(c.Spec.Paused, false) {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":null}}`))
	return apierror.IgnoreNotFound(r.Client.Patch(ctx, c.DeepCopy(), patch, fieldOwner))
}

// waitForDeletion waits for the end of a Cluster that somebody else deletes. Nothing is deleted while it is paused, so
// it is not kept paused longer than the spec says.
func (r *Reconciler) waitForDeletion(ctx context.Context, s *scope) error {
	a := advice{
		"somebody is deleting the Cluster of this WorkloadCluster, with all that is in it; no other is made in its place",
		v1alpha1.PlatformOperator,
		"find out who deletes it; to get rid of the cluster, delete the WorkloadCluster",
	}
	if ptr.Deref(s.object.Spec.Paused, false) {
		a = advice{
			"somebody is deleting the Cluster of this WorkloadCluster, which cannot be stopped; the deletion goes on once spec.paused is taken away, and no other is made in its place",
			v1alpha1.Customer, "save what you need of the cluster, then take spec.paused away; to get rid of the cluster, delete the WorkloadCluster",
		}
	}
	s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting, a)
	if !ptr.Deref(s.object.Spec.Paused, false) {
		if err := r.unpauseIfOwn(ctx, s.cluster); err != nil {
			return err
		}
	}
	return reconcile.Wait(0, "the deletion of the Cluster") // the watch of Clusters reports it
}

// unpauseIfOwn takes back our own pause of a Cluster, as applying it would. If somebody else has paused it too, it
// stays paused.
func (r *Reconciler) unpauseIfOwn(ctx context.Context, c *clusterv1.Cluster) error {
	if !ptr.Deref(c.Spec.Paused, false) {
		return nil
	}
	live := &clusterv1.Cluster{} // the cache has no managed fields
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return apierror.IgnoreObjectNotFound(err, "clusters", c.Name)
	}
	if live.UID != c.UID || !slices.Equal(pauseFieldManagers(live), []string{string(fieldOwner)}) {
		return nil
	}
	return r.unpause(ctx, live)
}

// releaseOrphan lets Cluster API delete the Cluster of a WorkloadCluster that is gone. Kubernetes removes an object at
// once that had no finalizer when its deletion began, also if it got one while admission was asked; what belongs to it
// is deleted by the garbage collector, and a Cluster that is paused would stay for ever.
func (r *Reconciler) releaseOrphan(ctx context.Context, key client.ObjectKey) error {
	c := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, key, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !isOrphan(c) || c.Labels[v1alpha1.ProviderLabel] != r.Provider.Name() || !ptr.Deref(c.Spec.Paused, false) {
		return nil
	}
	err := r.Live.Get(ctx, key, &v1alpha1.WorkloadCluster{}) // the cache of one kind may be behind that of another
	if !apierror.IsObjectNotFound(err, "workloadclusters", key.Name) {
		return err
	}
	return r.unpauseIfOwn(ctx, c)
}

// isOrphan reports whether a Cluster is being deleted that a WorkloadCluster has made. Whether that is still there is
// for the caller to know.
func isOrphan(c *clusterv1.Cluster) bool {
	owner := metav1.GetControllerOf(c)
	return !c.DeletionTimestamp.IsZero() && owner != nil && owner.Kind == "WorkloadCluster" && owner.Name == c.Name &&
		strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/")
}

// pauseFieldManagers returns the field managers that have paused a Cluster.
func pauseFieldManagers(c *clusterv1.Cluster) (out []string) {
	for _, f := range c.ManagedFields {
		var owned struct {
			Spec struct {
				Paused *struct{} `json:"f:paused"`
			} `json:"f:spec"`
		}
		if f.FieldsV1 != nil && json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned) == nil && owned.Spec.Paused != nil {
			out = append(out, f.Manager)
		}
	}
	return out
}

// deleteCluster deletes the Cluster, waits until it is gone, and removes the finalizer. A Cluster of somebody else
// stays.
func (r *Reconciler) deleteCluster(ctx context.Context, s *scope) error {
	if s.cluster == nil {
		// The cache may not have a Cluster that we created a moment ago: none may be left behind.
		s.cluster = &clusterv1.Cluster{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.object), s.cluster)
		if apierror.IgnoreObjectNotFound(err, "clusters", s.object.Name) != nil {
			return err
		}
		if err != nil {
			s.cluster = nil
		}
	}
	if s.cluster == nil || !s.ownsCluster() {
		controllerutil.RemoveFinalizer(s.object, v1alpha1.WorkloadClusterFinalizer)
		return nil
	}
	if err := r.unpause(ctx, s.cluster); err != nil {
		return err
	}
	if s.cluster.DeletionTimestamp.IsZero() {
		uid := s.cluster.UID
		err := r.Client.Delete(ctx, s.cluster, client.Preconditions{UID: &uid})
		// A conflict means that a Cluster of another UID has this name by now. The watch reports it.
		if apierror.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonApplyFailed, advice{
				fmt.Sprintf("the cluster cannot be deleted: %v", err), v1alpha1.PlatformOperator,
				"see the log of the plane; it is tried again by itself",
			})
			return err
		}
	}
	text := "the cluster and its machines are being deleted"
	if c := meta.FindStatusCondition(s.cluster.Status.Conditions, clusterv1.DeletingCondition); c != nil &&
		c.Message != "" {
		text += ": " + c.Message
	}
	s.conditions.SetFalse(v1alpha1.ConditionApplied, v1alpha1.ReasonDeleting, text)
	return reconcile.Wait(0, "the deletion of the Cluster") // the watch of Clusters reports it
}
