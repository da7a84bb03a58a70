package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// cacheWaitTimeout is how long a request waits for the caches. Then it is answered all the same: what it
	// wrote is written.
	cacheWaitTimeout = 10 * time.Second
	// A cache is checked soon at first, since its watch is in the same process, and then less often.
	minCachePoll, maxCachePoll = time.Millisecond, 20 * time.Millisecond
)

// cacheWaiter delays the answer of a request that writes until the caches of its manager have what it wrote.
// Cluster API's controllers need that: one that does not see the Machine it has just made makes another, and
// takes what belongs to the first for an orphan and deletes it. They have a guard of their own, but it cannot be
// had without their limit of one reconcile a second for each object (docs/adr/0013).
type cacheWaiter struct {
	scheme    *runtime.Scheme
	mu        sync.Mutex
	informers map[schema.GroupVersionKind][]trackedInformer
}

// trackedInformer is the part of an informer that is needed here.
type trackedInformer interface {
	GetStore() toolscache.Store
	IsStopped() bool
}

func newCacheWaiter(scheme *runtime.Scheme) *cacheWaiter {
	return &cacheWaiter{scheme: scheme, informers: map[schema.GroupVersionKind][]trackedInformer{}}
}

// trackInformers makes e know all informers that are created with these options.
func (e *cacheWaiter) trackInformers(o ctrlcache.Options) ctrlcache.Options {
	informer := toolscache.NewSharedIndexInformer
	if o.NewInformer != nil {
		informer = o.NewInformer
	}
	o.NewInformer = func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		i := informer(lw, example, resync, indexers)
		if gvk, err := apiutil.GVKForObject(example, e.scheme); err == nil {
			e.addInformer(gvk, i)
		}
		return i
	}
	return o
}

func (e *cacheWaiter) addInformer(gvk schema.GroupVersionKind, l trackedInformer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.informers[gvk] = append(e.informers[gvk], l)
}

// wrapTransport is a rest.Config's WrapTransport.
func (e *cacheWaiter) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(r)
		if err != nil || r.Method == http.MethodGet || res.StatusCode >= http.StatusMultipleChoices ||
			r.URL.Query().Has("dryRun") {
			return res, err
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // the body was read, or reading failed
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		var written metav1.PartialObjectMetadata
		if json.Unmarshal(body, &written) == nil && written.ResourceVersion != "" {
			e.waitForCaches(r.Context(), written.GroupVersionKind(), written.ResourceVersion)
		}
		return res, nil
	})
}

// waitForCaches waits until all caches of a kind have reached a resource version.
func (e *cacheWaiter) waitForCaches(ctx context.Context, gvk schema.GroupVersionKind, version string) {
	timeout := time.NewTimer(cacheWaitTimeout)
	defer timeout.Stop()
	for pause := minCachePoll; !e.hasReachedVersion(gvk, version); pause = min(2*pause, maxCachePoll) {
		select {
		case <-ctx.Done():
			return
		case <-timeout.C:
			klog.FromContext(ctx).Info("A cache of Cluster API is late", "kind", gvk.Kind, "by", cacheWaitTimeout)
			return
		case <-time.After(pause):
		}
	}
}

// hasReachedVersion says whether all running caches of a kind have reached a resource version. A kind that nobody
// caches has.
func (e *cacheWaiter) hasReachedVersion(gvk schema.GroupVersionKind, version string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	// An informer that has stopped gets nothing more; waiting for it would take the whole timeout.
	e.informers[gvk] = slices.DeleteFunc(e.informers[gvk], trackedInformer.IsStopped)
	return !slices.ContainsFunc(e.informers[gvk], func(l trackedInformer) bool {
		c, err := resourceversion.CompareResourceVersion(l.GetStore().LastStoreSyncResourceVersion(), version)
		return err != nil || c < 0 // a cache that has not synced yet has no version to compare
	})
}
