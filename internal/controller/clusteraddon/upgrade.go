package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

// retryAfterSeconds is how soon Cluster API asks again whether an upgrade may begin.
const retryAfterSeconds = 5

// HoldUpgrade answers the runtime hook BeforeClusterUpgrade of Cluster API: an upgrade of Kubernetes is held while the
// add-ons for it are not applied. It decides nothing and remembers nothing; it only reads what the reconciler has
// written. A cluster without add-ons of ours is not held.
func HoldUpgrade(ctx context.Context, c client.Reader, request *runtimehooksv1.BeforeClusterUpgradeRequest,
	response *runtimehooksv1.BeforeClusterUpgradeResponse) error {
	why, err := reasonToHold(ctx, c, request)
	if err != nil {
		return err
	}
	if why != "" {
		response.RetryAfterSeconds = retryAfterSeconds
		response.Message = fmt.Sprintf("the upgrade to %s waits for %s", request.ToKubernetesVersion, why)
	}
	response.Status = runtimehooksv1.ResponseStatusSuccess
	return nil
}

// reasonToHold says what an upgrade waits for; "" if it may begin.
func reasonToHold(ctx context.Context, c client.Reader,
	request *runtimehooksv1.BeforeClusterUpgradeRequest) (why string, err error) {
	rel, err := releaseOfCluster(ctx, c, &request.Cluster)
	if err != nil || rel == nil {
		return "", err
	}
	o := &csv1.ClusterAddon{}
	err = c.Get(ctx, client.ObjectKey{Namespace: request.Cluster.Namespace, Name: csv1.AddonPrefix + request.Cluster.Name},
		o)
	if apierror.IsObjectNotFound(err, "clusteraddons", csv1.AddonPrefix+request.Cluster.Name) {
		return "the add-ons of " + rel.Name + ", which have not been looked at yet", nil
	}
	if err != nil {
		return "", err
	}
	// All must be of the new release: its stages may be planned anew at any time, for other content.
	target := targetOf(rel)
	if o.Status.Release == target && o.Status.Target == target && o.Status.TargetDigest == rel.Status.Digest &&
		allDone(o.Status.Stages) {
		return "", nil
	}
	if o.Status.Target != target {
		if c := meta.FindStatusCondition(o.Status.Conditions, csv1.ConditionClusterReady); c != nil &&
			c.Status == metav1.ConditionFalse {
			return describeBlocker(rel, c), nil
		}
		return "the add-ons of " + rel.Name + ", which have not been begun yet", nil
	}
	for _, t := range []string{csv1.ConditionClusterReady, csv1.ConditionApplied} {
		if c := meta.FindStatusCondition(o.Status.Conditions, t); c != nil && c.Status != metav1.ConditionTrue {
			return describeBlocker(rel, c), nil
		}
	}
	return "the add-ons of " + rel.Name + ", which are being applied", nil
}

// describeBlocker returns the message of a condition that blocks an upgrade.
func describeBlocker(rel *csv1.ClusterStackRelease, c *metav1.Condition) string {
	return "the add-ons of " + rel.Name + ": " + c.Message
}
