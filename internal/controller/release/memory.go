package release

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
)

// memory spares work: of a release whose objects nobody has touched since it was applied, nothing has to
// be rendered and applied again. Whatever is not in it is done anew, so nothing depends on it.
type memory struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]remembered
}

// remembered is what was applied for a release.
type remembered struct {
	uid     types.UID
	digest  string
	objects []touched
}

// touched is an object as it was right after it was applied.
type touched struct {
	ref                 apply.Ref
	uid                 types.UID
	generation          int64
	labels, annotations map[string]string // those that were applied
}

func (m *memory) remember(o *csv1.ClusterStackRelease, results []apply.Result, set *apply.Set) {
	r := remembered{uid: o.UID, digest: o.Status.Digest}
	for _, res := range results {
		wanted := set.Object(res.Ref)
		r.objects = append(r.objects, touched{
			ref: res.Ref, uid: res.Object.GetUID(), generation: res.Object.GetGeneration(),
			labels: wanted.GetLabels(), annotations: wanted.GetAnnotations(),
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[types.NamespacedName]remembered{}
	}
	m.seen[client.ObjectKeyFromObject(o)] = r
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, key)
}

// unchanged says that all objects are still as they were applied, as far as the cache knows.
func (m *memory) unchanged(ctx context.Context, cache client.Reader, o *csv1.ClusterStackRelease) (objects int, ok bool) {
	m.mu.Lock()
	r, ok := m.seen[client.ObjectKeyFromObject(o)]
	m.mu.Unlock()
	if !ok || r.uid != o.UID || r.digest != o.Status.Digest || len(r.objects) != len(o.Status.Resources) {
		return 0, false
	}
	for _, res := range o.Status.Resources {
		if res.Status != csv1.ResourceSynced {
			return 0, false
		}
	}
	for _, t := range r.objects {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(schema.GroupVersionKind{Group: t.ref.Group, Version: t.ref.Version, Kind: t.ref.Kind})
		if err := cache.Get(ctx, client.ObjectKey{Namespace: t.ref.Namespace, Name: t.ref.Name}, live); err != nil || !t.is(live, o.UID) {
			return 0, false
		}
	}
	return len(r.objects), true
}

func (t touched) is(live *metav1.PartialObjectMetadata, owner types.UID) bool {
	owned := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner && r.Controller != nil && *r.Controller })
	return live.UID == t.uid && live.Generation == t.generation && live.DeletionTimestamp.IsZero() && owned &&
		contains(live.Labels, t.labels) && contains(live.Annotations, t.annotations)
}

func contains(have, want map[string]string) bool {
	for k := range maps.Keys(want) {
		if v, ok := have[k]; !ok || v != want[k] {
			return false
		}
	}
	return true
}
