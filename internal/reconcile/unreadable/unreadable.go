// Package unreadable keeps one object that Go cannot decode, such as one with a number where text belongs, from
// stopping all others of its kind. The API server does not care about such an object if it is a custom resource, but
// the list of a typed informer fails as a whole, and so does its watch.
//
// Filter stands between the informers of a manager and the API server. It does nothing until a list cannot be
// decoded. From then on it looks at each object of this kind by itself, until all can be read again.
//
// Controllers must not take an unreadable object for a deleted one. What an informer gets in its place is
//
//  1. the last version that could be read, if the informer has one. For its controllers nothing has changed. Its
//     resource version is the old one, so that an update meets a conflict. That it is being deleted is not seen
//     either: what a finalizer protects is not removed for an object of which only a part is known.
//  2. after a start there is none. Kinds that controllers count or look up (see isCounted) are given without the
//     fields that are wrong, and paused, which Cluster API respects for the object and, if it is a Cluster, for all
//     that belongs to it. If a Machine were left out, another would be made and its member of etcd be removed.
//  3. all other kinds are left out. Without its object a controller does nothing: all deletions start from a
//     deletion timestamp on an object that was read, and Kubernetes' garbage collector knows only metadata. What
//     depends on the absence of Clusters asks for case 2 (lineage.ClustersOfRelease).
//
// A deletion reaches the informer only when the API server has sent it.
package unreadable

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Object is one that cannot be decoded.
type Object struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Problem         string // which field is wrong, and how
}

// Filter is for the informers of one manager.
type Filter struct {
	scheme *runtime.Scheme

	mu      sync.Mutex
	kinds   []*kindFilter
	pending []Object      // not yet reported
	wake    chan struct{} // has an element if something is pending
}

// New returns a filter for a manager with this scheme. Its client must use WrapTransport, its cache FilterInformers,
// and AddReporter must be called.
func New(scheme *runtime.Scheme) *Filter {
	return &Filter{scheme: scheme, wake: make(chan struct{}, 1)}
}

// kindFilter is for one informer.
type kindFilter struct {
	gvk    schema.GroupVersionKind
	goType reflect.Type
	lw     toolscache.ListerWatcherWithContext
	store  toolscache.Store // what the informer has
	report func(Object)

	mu      sync.Mutex
	suspect bool                 // lists and watches are looked at
	bad     map[types.UID]Object // those that cannot be read now
}

// FilterInformers puts f before all informers that are created with these options.
func (f *Filter) FilterInformers(o cache.Options) cache.Options {
	newInformer := toolscache.NewSharedIndexInformer
	if o.NewInformer != nil {
		newInformer = o.NewInformer
	}
	o.NewInformer = func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		k := f.newKindFilter(lw, example)
		if k == nil {
			return newInformer(lw, example, resync, indexers)
		}
		i := newInformer(&toolscache.ListWatch{ListWithContextFunc: k.list, WatchFuncWithContext: k.watch},
			example, resync, indexers)
		k.store = i.GetStore()
		return i
	}
	return o
}

// newKindFilter returns nil for what needs none: unstructured objects and metadata can always be read.
func (f *Filter) newKindFilter(lw toolscache.ListerWatcher, example runtime.Object) *kindFilter {
	switch example.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return nil
	}
	gvk, err := apiutil.GVKForObject(example, f.scheme)
	if err != nil {
		return nil
	}
	k := &kindFilter{
		gvk: gvk, goType: reflect.TypeOf(example).Elem(), lw: toolscache.ToListerWatcherWithContext(lw),
		report: f.addPending, bad: map[types.UID]Object{},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds = append(f.kinds, k)
	return k
}

// filterKey is the key of the kindFilter in the context of a request whose answer it shall look at.
type filterKey struct{}

// list lists as the informer would. If that cannot be decoded, it lists again with the transport's help.
func (k *kindFilter) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !k.isSuspect() {
		l, err := k.lw.ListWithContext(ctx, o)
		if !isDecodeError(err) {
			return l, err
		}
		k.setSuspect()
	}
	return k.lw.ListWithContext(context.WithValue(ctx, filterKey{}, k), o)
}

// watch needs no look at errors: after one, client-go's reflector lists again, also if it begins with a watch that
// sends what there is (WatchList), and that list fails for the same reason.
func (k *kindFilter) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if k.isSuspect() {
		ctx = context.WithValue(ctx, filterKey{}, k)
	}
	return k.lw.WatchWithContext(ctx, o)
}

func (k *kindFilter) isSuspect() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.suspect
}

func (k *kindFilter) setSuspect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.suspect = true
}

// setBad records an object that cannot be read, and has it reported once for each resource version.
func (k *kindFilter) setBad(o Object) {
	k.mu.Lock()
	known, ok := k.bad[o.UID]
	k.bad[o.UID] = o
	k.suspect = true
	k.mu.Unlock()
	if !ok || known.ResourceVersion != o.ResourceVersion {
		k.report(o)
	}
}

// forget removes an object that can be read again, or is gone. Without any other, requests are no longer looked at.
func (k *kindFilter) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.bad[uid]; ok {
		delete(k.bad, uid)
		k.suspect = len(k.bad) > 0
	}
}

// keepOnly forgets all but those that a whole list has found.
func (k *kindFilter) keepOnly(found map[types.UID]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid := range k.bad {
		if !found[uid] {
			delete(k.bad, uid)
		}
	}
	k.suspect = len(k.bad) > 0
}

// Unreadable returns the objects that cannot be read now.
func (f *Filter) Unreadable() []Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Object
	for _, k := range f.kinds {
		k.mu.Lock()
		all = slices.AppendSeq(all, maps.Values(k.bad))
		k.mu.Unlock()
	}
	return all
}
