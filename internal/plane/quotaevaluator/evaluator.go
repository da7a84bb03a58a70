// Package quotaevaluator lets ResourceQuotas of Kubernetes count what WorkloadClusters ask for: machines, CPUs, memory
// and disk, beside how many there are. The API server charges each new cluster before it is stored, one after the
// other, so that requests at the same time never get more together than one alone; a controller counts all of it anew.
//
// Changes of clusters are not charged here: the API server tries one again if something else of the object has changed
// meanwhile, and would charge each try. They are checked at admission, see quota.Reservations, and then counted.
package quotaevaluator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubequota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/quota/counted"
	"github.com/polder-kaas/polder/provider"
)

// Resource is what is counted.
var Resource = v1alpha1.GroupVersion.WithResource("workloadclusters")

// readTimeout is how long one count may wait for caches and the API server.
const readTimeout = 30 * time.Second

// Source is where clusters and providers are read. It is there before anybody counts: whoever checks WorkloadClusters
// at admission sets it, and without that check none is stored.
type Source struct{ readers atomic.Pointer[readers] }

type readers struct{ cache, live client.Reader }

// Set gives a cache, and what reads from the API server itself.
func (s *Source) Set(cache, live client.Reader) { s.readers.Store(&readers{cache, live}) }

// Cache returns what reads from the cache, or nil if there is none yet.
func (s *Source) Cache() client.Reader {
	if r := s.readers.Load(); r != nil {
		return r.cache
	}
	return nil
}

// Await waits until clusters and providers can be read, at most for a time.
func (s *Source) Await(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		r := s.readers.Load()
		if r != nil && r.cache.List(ctx, &v1alpha1.ProviderList{}, client.UnsafeDisableDeepCopy) == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Evaluator counts WorkloadClusters. Its other methods are those of an evaluator of Kubernetes that counts objects.
type Evaluator struct {
	kubequota.Evaluator
	source *Source
	list   generic.ListFuncByNamespace // the metadata of all clusters; nil at admission, which lists none
}

var _ kubequota.Evaluator = &Evaluator{}

// New makes an evaluator. list may be nil for one that only charges requests.
func New(source *Source, list generic.ListFuncByNamespace) *Evaluator {
	return &Evaluator{generic.NewObjectCountEvaluator(Resource.GroupResource(), list, ""), source, list}
}

// MatchingResources returns those of the names that are counted here.
func (e *Evaluator) MatchingResources(input []corev1.ResourceName) []corev1.ResourceName {
	return append(e.Evaluator.MatchingResources(input), kubequota.Intersection(input, counted.InClusters())...)
}

// Matches reports whether a quota counts a cluster.
func (e *Evaluator) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	return generic.Matches(q, item, e.MatchingResources, generic.MatchesNoScopeFunc)
}

// Usage returns how much a cluster asks for.
func (e *Evaluator) Usage(item runtime.Object) (corev1.ResourceList, error) {
	u, ok := item.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("counting a %T", item)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout) //nolint:forbidigo // the interface has no context
	defer cancel()
	describe, err := e.describe(ctx)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(
			fmt.Sprintf("the quota cannot be counted, since the providers cannot be read: %v; try again", err))
	}
	return quota.Usage(quota.ReadSpec(u), describe), nil
}

// describe returns what providers say of themselves.
func (e *Evaluator) describe(ctx context.Context) (quota.Describe, error) {
	from := e.source.readers.Load()
	var l v1alpha1.ProviderList
	if from != nil {
		if err := from.cache.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	return func(name string) (provider.Description, bool) {
		for i := range l.Items {
			if p := &l.Items[i]; p.Name == name {
				return provider.Description{
					Name: p.Name, MachineTypes: p.Status.MachineTypes, AnyShape: p.Status.AnyShape,
				}, true
			}
		}
		return provider.Description{}, false
	}, nil
}

// UsageStats counts all clusters of a namespace. Which there are says the list that reports deletions, too. What they
// ask for is read from a cache, and from the API server where that is not up to date.
func (e *Evaluator) UsageStats(o kubequota.UsageStatsOptions) (kubequota.UsageStats, error) {
	var out kubequota.UsageStats
	if len(kubequota.Intersection(o.Resources, counted.InClusters())) == 0 {
		return e.Evaluator.UsageStats(o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout) //nolint:forbidigo // the interface has no context
	defer cancel()
	from := e.source.readers.Load()
	if from == nil {
		return out, errors.New("the operator has not started, and nobody else knows what clusters ask for")
	}
	describe, err := e.describe(ctx)
	if err != nil {
		return out, err
	}
	return generic.CalculateUsageStats(o, e.list, generic.MatchesNoScopeFunc,
		func(item runtime.Object) (corev1.ResourceList, error) {
			m, err := meta.Accessor(item)
			if err != nil {
				return nil, err
			}
			c, err := from.read(ctx, client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}, m.GetGeneration())
			if err != nil {
				return nil, client.IgnoreNotFound(err) // it has just gone
			}
			return quota.Usage(&c.Spec, describe), nil
		})
}

// read returns a cluster that is not older than a generation.
func (r *readers) read(ctx context.Context, key client.ObjectKey, generation int64) (*v1alpha1.WorkloadCluster, error) {
	c := &v1alpha1.WorkloadCluster{}
	err := r.cache.Get(ctx, key, c)
	if apierrors.IsNotFound(err) || err == nil && c.Generation < generation {
		c = &v1alpha1.WorkloadCluster{}
		err = r.live.Get(ctx, key, c)
	}
	return c, err
}
