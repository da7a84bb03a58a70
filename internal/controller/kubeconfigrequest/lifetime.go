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

// answerTimeout is how long a request waits for an answer. Nobody should get access days after they asked.
const answerTimeout = time.Hour

// isAnswered says that there is an answer. It is written as a whole, and never changed.
func isAnswered(o *v1alpha1.KubeconfigRequest) bool {
	return o.Status.ExpirationTime != nil && (o.Status.Certificate != "" || o.Status.SecretName != "")
}

// deletionTime is when the request is deleted: when its answer is worth nothing any more, or nobody waits for one.
func deletionTime(o *v1alpha1.KubeconfigRequest) time.Time {
	if isAnswered(o) {
		return o.Status.ExpirationTime.Time
	}
	return o.CreationTimestamp.Add(answerTimeout)
}

// requeueDelay is when to look again: after what was asked for, 0 being never, but not later than at the end. The
// answer may have come in this run, and its end can be past if it was there for long.
func requeueDelay(asked, left time.Duration) time.Duration {
	if asked == 0 {
		asked = left
	}
	return max(min(asked, left), time.Millisecond)
}

// deleteRequest deletes the request, and no other of its name. The Secret goes with it, since the request owns it.
func (r *Reconciler) deleteRequest(ctx context.Context, o *v1alpha1.KubeconfigRequest) error {
	err := r.Client.Delete(ctx, o,
		client.Preconditions(metav1.Preconditions{UID: ptr.To(o.UID)}), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierror.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting a request whose time is over: %w", err)
	}
	return nil
}
