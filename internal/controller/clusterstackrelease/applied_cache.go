package clusterstackrelease

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// appliedCache spares work. What this process has applied it knows in full. Of what a process before it has applied,
// the status says enough to leave unmodified objects alone.
type appliedCache struct {
	reconcile.Memory[types.NamespacedName, cacheEntry]
}

// cacheEntry is what is known of a release.
type cacheEntry struct {
	reapplyAt time.Time                    // when it is applied again even if nothing seems to have changed
	metadata  map[apply.Key]objectMetadata // of its objects; nil if this process has not applied it
}

// objectMetadata is metadata that was applied. It is compared apart, since it does not count for an object's
// generation.
type objectMetadata struct{ labels, annotations map[string]string }

// isDue reports whether it is time to apply a release again. For one that is not known the interval begins now: after a
// restart, not all are applied at once.
func (m *appliedCache) isDue(o *csv1.ClusterStackRelease, now time.Time, interval time.Duration) bool {
	e := m.Update(client.ObjectKeyFromObject(o), func(e cacheEntry, known bool) cacheEntry {
		if !known {
			e.reapplyAt = nextReapply(now, interval)
		}
		return e
	})
	return now.After(e.reapplyAt)
}

// remember records a release that was just applied.
func (m *appliedCache) remember(o *csv1.ClusterStackRelease, set *apply.Set, now time.Time, interval time.Duration) {
	e := cacheEntry{reapplyAt: nextReapply(now, interval), metadata: map[apply.Key]objectMetadata{}}
	for _, ref := range set.Refs() {
		u := set.Object(ref)
		e.metadata[ref.Key()] = objectMetadata{u.GetLabels(), u.GetAnnotations()}
	}
	m.Store(client.ObjectKeyFromObject(o), e)
}

// nextReapply returns when to apply again, with jitter, so that releases do not all come at once.
func nextReapply(now time.Time, interval time.Duration) time.Time {
	return now.Add(wait.Jitter(interval, 0.2))
}

// cacheReadTimeout is how long a kind may take to get into the cache. One that cannot be read would take for ever.
const cacheReadTimeout = 10 * time.Second

// isUnchanged reports whether all objects are as they were when they were last applied, so that nothing has to be
// rendered and applied again.
func (m *appliedCache) isUnchanged(ctx context.Context, cache client.Reader, o *csv1.ClusterStackRelease) bool {
	e, _ := m.Load(client.ObjectKeyFromObject(o))
	ctx, cancel := context.WithTimeout(ctx, cacheReadTimeout)
	defer cancel()
	for _, r := range o.Status.Resources {
		ref := apply.InventoryRef(r)
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(ref.GroupVersionKind())
		if r.Status != csv1.ResourceSynced || r.UID == "" ||
			cache.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, live) != nil {
			return false
		}
		d, known := e.metadata[ref.Key()]
		if (e.metadata != nil && !known) || !isUnmodified(r, live, o.UID) || !hasEntries(live.Labels, d.labels) ||
			!hasEntries(live.Annotations, d.annotations) {
			return false
		}
	}
	return len(o.Status.Resources) > 0
}

// isUnmodified reports whether an object is the one that was applied, with the same generation, owner and label.
func isUnmodified(r csv1.Resource, live *metav1.PartialObjectMetadata, owner types.UID) bool {
	owned := slices.ContainsFunc(live.OwnerReferences,
		func(r metav1.OwnerReference) bool { return r.UID == owner && r.Controller != nil && *r.Controller })
	return live.UID == r.UID && live.Generation == r.Generation && live.DeletionTimestamp.IsZero() && owned &&
		live.Labels[csv1.OwnedLabel] == csv1.OwnedValue
}

// hasEntries reports whether a map has all entries of another.
func hasEntries(have, want map[string]string) bool {
	for k, v := range want {
		if is, ok := have[k]; !ok || is != v {
			return false
		}
	}
	return true
}

// recordGenerations records in the inventory which UID and generation objects had when they were applied.
func recordGenerations(resources []csv1.Resource, results []apply.Result) {
	at := map[apply.Key]apply.Result{}
	for _, res := range results {
		at[res.Ref.Key()] = res
	}
	for i := range resources {
		resources[i].UID, resources[i].Generation = "", 0
		if res, ok := at[apply.InventoryRef(resources[i]).Key()]; ok && res.Object != nil {
			resources[i].UID, resources[i].Generation = res.Object.GetUID(), res.Object.GetGeneration()
		}
	}
}
