package release

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

// memory spares work. What a process has applied it knows in full; of what one before it has applied, the
// status says enough to leave alone what nobody has touched.
type memory struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]remembered
}

// remembered is what is known of a release.
type remembered struct {
	due    time.Time                // when it is applied again although nothing seems to have changed
	wanted map[apply.Key]decoration // of its objects; nil if this process has not applied it
}

type decoration struct{ labels, annotations map[string]string }

// over says that it is time to apply a release again. The time of one that is not known begins now.
func (m *memory) over(o *csv1.ClusterStackRelease, interval time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	r, ok := m.seen[key]
	if !ok {
		m.put(key, remembered{due: next(interval)})
	}
	return ok && time.Now().After(r.due)
}

// remember is for a release that was just applied.
func (m *memory) remember(o *csv1.ClusterStackRelease, set *apply.Set, interval time.Duration) {
	r := remembered{due: next(interval), wanted: map[apply.Key]decoration{}}
	for _, ref := range set.Refs() {
		u := set.Object(ref)
		r.wanted[ref.Key()] = decoration{u.GetLabels(), u.GetAnnotations()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(client.ObjectKeyFromObject(o), r)
}

func next(interval time.Duration) time.Time { return time.Now().Add(wait.Jitter(interval, 0.2)) }

func (m *memory) put(key types.NamespacedName, r remembered) {
	if m.seen == nil {
		m.seen = map[types.NamespacedName]remembered{}
	}
	m.seen[key] = r
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, key)
}

// cacheTime is how long a kind may take to get into the cache; one that cannot be read would take for ever.
const cacheTime = 10 * time.Second

// unchanged says that all objects are as they were when they were last applied: nobody has touched them,
// so nothing has to be rendered and applied again.
func (m *memory) unchanged(ctx context.Context, cache client.Reader, o *csv1.ClusterStackRelease) bool {
	m.mu.Lock()
	wanted := m.seen[client.ObjectKeyFromObject(o)].wanted
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, cacheTime)
	defer cancel()
	for _, r := range o.Status.Resources {
		ref := apply.InventoryRef(r)
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(ref.GroupVersionKind())
		if r.Status != csv1.ResourceSynced || r.UID == "" || cache.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, live) != nil {
			return false
		}
		d, known := wanted[ref.Key()]
		if (wanted != nil && !known) || !untouched(r, live, o.UID) || !contains(live.Labels, d.labels) || !contains(live.Annotations, d.annotations) {
			return false
		}
	}
	return len(o.Status.Resources) > 0
}

func untouched(r csv1.Resource, live *metav1.PartialObjectMetadata, owner types.UID) bool {
	owned := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner && r.Controller != nil && *r.Controller })
	return live.UID == r.UID && live.Generation == r.Generation && live.DeletionTimestamp.IsZero() && owned && live.Labels[csv1.OwnedLabel] == csv1.OwnedValue
}

func contains(have, want map[string]string) bool {
	for k, v := range want {
		if is, ok := have[k]; !ok || is != v {
			return false
		}
	}
	return true
}

// note writes down how objects were when they were applied.
func note(resources []csv1.Resource, results []apply.Result) {
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
