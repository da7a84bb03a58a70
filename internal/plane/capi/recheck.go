package capi

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// recheckInterval is how often Cluster API looks again at control planes whose components are not healthy. A look takes
// some tens of milliseconds, so that those of many clusters on their way are not all looked at, nor are new ones.
const (
	recheckInterval = 20 * time.Second
	recheckAfter    = 30 * time.Second
	maxRechecks     = 20 // each interval
)

// recheckingCache is a ClusterCache whose source of events also queues control planes of which Cluster API does not
// know how they are. Cluster API looks again at those that it knows to be unhealthy, but not at these: a node that
// could not be reached for a minute was called unreachable for ten, the time after which everything is looked at.
type recheckingCache struct {
	clustercache.ClusterCache
	reader client.Reader // of control planes, from a cache
	clock  clock.WithTicker
}

// GetClusterSource returns the source of events for the controller of control planes.
func (c recheckingCache) GetClusterSource(name string, mapFunc func(context.Context, client.Object) []ctrl.Request,
	opts ...clustercache.GetClusterSourceOption) source.Source {
	return recheckSource{events: c.ClusterCache.GetClusterSource(name, mapFunc, opts...), cache: c}
}

// recheckSource is the source of a recheckingCache.
type recheckSource struct {
	events source.Source
	cache  recheckingCache
}

// Start queues until ctx ends, and returns at once.
func (s recheckSource) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	go func() {
		tick := s.cache.clock.NewTicker(recheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
			}
			for _, r := range s.cache.listUncertain(ctx) {
				q.Add(r)
			}
		}
	}()
	return s.events.Start(ctx, q)
}

// listUncertain returns the control planes that Cluster API does not look at again by itself, and should.
func (c recheckingCache) listUncertain(ctx context.Context) (all []ctrl.Request) {
	var l controlplanev1.KubeadmControlPlaneList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the next time
	}
	for i := range l.Items {
		if o := &l.Items[i]; o.DeletionTimestamp.IsZero() && isUncertain(o, c.clock.Now()) {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) // each has its turn
	return all[:min(len(all), maxRechecks)]
}

// isUncertain says that the health of components or of the store of a control plane that has once run has not been
// known for a while, or that its store has not been healthy.
func isUncertain(o *controlplanev1.KubeadmControlPlane, now time.Time) bool {
	if !ptr.Deref(o.Status.Initialization.ControlPlaneInitialized, false) {
		return false // at those it looks by itself
	}
	isOld := func(c *metav1.Condition, status ...metav1.ConditionStatus) bool {
		return c != nil && slices.Contains(status, c.Status) && now.Sub(c.LastTransitionTime.Time) > recheckAfter
	}
	components := meta.FindStatusCondition(o.Status.Conditions,
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition)
	store := meta.FindStatusCondition(o.Status.Conditions, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	return isOld(components, metav1.ConditionUnknown) || isOld(store, metav1.ConditionUnknown, metav1.ConditionFalse)
}
