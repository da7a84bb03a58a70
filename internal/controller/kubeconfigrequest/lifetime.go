package kubeconfigrequest

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

// answerTimeout is how long a request waits for its credentials. Nobody should get access days after they asked.
const answerTimeout = time.Hour

// isAnswered reports whether credentials were issued. They are written as a whole, and never changed.
func isAnswered(o *v1alpha1.KubeconfigRequest) bool {
	return o.Status.ExpirationTime != nil && (o.Status.Certificate != "" || o.Status.SecretName != "")
}

// deletionTime returns when the request is deleted: when its credentials expire, or nobody waits for them any more.
func deletionTime(o *v1alpha1.KubeconfigRequest) time.Time {
	if isAnswered(o) {
		return o.Status.ExpirationTime.Time
	}
	return o.CreationTimestamp.Add(answerTimeout)
}

// isOver reports whether nobody needs the request any more: its time is over, or it has credentials for a cluster that
// is gone, or was made after them under the same name. The cache may be behind, so the API server is asked.
func (r *Reconciler) isOver(ctx context.Context, s *scope) (bool, error) {
	o := s.request
	if !s.now.Before(deletionTime(o)) {
		return true, nil
	}
	if !isAnswered(o) {
		return false, nil
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.ClusterName}
	c := &v1alpha1.WorkloadCluster{}
	if r.Client.Get(ctx, key, c) == nil && !o.CreationTimestamp.Before(&c.CreationTimestamp) {
		return false, nil
	}
	c = &v1alpha1.WorkloadCluster{}
	err := r.Live.Get(ctx, key, c)
	if apierror.IsObjectNotFound(err, "workloadclusters", key.Name) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading WorkloadCluster %s: %w", key, err)
	}
	return o.CreationTimestamp.Before(&c.CreationTimestamp), nil
}

// requeueDelay returns when to look again: after the delay that was asked for (0 is never), but not later than at
// deletionTime. The credentials may have been issued in this run, and may have expired already if their Secret was made
// long ago.
func requeueDelay(asked, left time.Duration) time.Duration {
	if asked == 0 {
		asked = left
	}
	return max(min(asked, left), time.Millisecond)
}

// deleteRequest deletes the request, and no other of its name. The Secret goes with it, since the request owns it.
func (r *Reconciler) deleteRequest(ctx context.Context, o *v1alpha1.KubeconfigRequest) error {
	err := r.Client.Delete(ctx, o,
		client.Preconditions(metav1.Preconditions{UID: ptr.To(o.UID)}),
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierror.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting a request whose time is over: %w", err)
	}
	return nil
}
