package clusterstackrelease

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
)

// appliedCache spares work. What this process has applied it knows in full. Of what a process before it has applied,
// the status says enough to leave unmodified objects alone.
type appliedCache struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]cacheEntry
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
func (m *appliedCache) isDue(o *csv1.ClusterStackRelease, interval time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	r, ok := m.entries[key]
	if !ok {
		m.put(key, cacheEntry{reapplyAt: nextReapply(interval)})
	}
	return ok && time.Now().After(r.reapplyAt)
}

// remember records a release that was just applied.
func (m *appliedCache) remember(o *csv1.ClusterStackRelease, set *apply.Set, interval time.Duration) {
	r := cacheEntry{reapplyAt: nextReapply(interval), metadata: map[apply.Key]objectMetadata{}}
	for _, ref := range set.Refs() {
		u := set.Object(ref)
		r.metadata[ref.Key()] = objectMetadata{u.GetLabels(), u.GetAnnotations()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(client.ObjectKeyFromObject(o), r)
}

// nextReapply returns when to apply again, with jitter, so that releases do not all come at once.
func nextReapply(interval time.Duration) time.Time { return time.Now().Add(wait.Jitter(interval, 0.2)) }

// put stores an entry. The caller holds the lock.
func (m *appliedCache) put(key types.NamespacedName, r cacheEntry) {
	if m.entries == nil {
		m.entries = map[types.NamespacedName]cacheEntry{}
	}
	m.entries[key] = r
}

// forget drops what is known of a release.
func (m *appliedCache) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}

// cacheReadTimeout is how long a kind may take to get into the cache. One that cannot be read would take for ever.
const cacheReadTimeout = 10 * time.Second

// isUnchanged reports whether all objects are as they were when they were last applied, so that nothing has to be
// rendered and applied again.
func (m *appliedCache) isUnchanged(ctx context.Context, cache client.Reader, o *csv1.ClusterStackRelease) bool {
	m.mu.Lock()
	metadata := m.entries[client.ObjectKeyFromObject(o)].metadata
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, cacheReadTimeout)
	defer cancel()
	for _, r := range o.Status.Resources {
		ref := apply.InventoryRef(r)
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(ref.GroupVersionKind())
		if r.Status != csv1.ResourceSynced || r.UID == "" || cache.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, live) != nil {
			return false
		}
		d, known := metadata[ref.Key()]
		if (metadata != nil && !known) || !isUnmodified(r, live, o.UID) || !hasEntries(live.Labels, d.labels) || !hasEntries(live.Annotations, d.annotations) {
			return false
		}
	}
	return len(o.Status.Resources) > 0
}

// isUnmodified reports whether an object is the one that was applied, with the same generation, owner and label.
func isUnmodified(r csv1.Resource, live *metav1.PartialObjectMetadata, owner types.UID) bool {
	owned := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner && r.Controller != nil && *r.Controller })
	return live.UID == r.UID && live.Generation == r.Generation && live.DeletionTimestamp.IsZero() && owned && live.Labels[csv1.OwnedLabel] == csv1.OwnedValue
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
