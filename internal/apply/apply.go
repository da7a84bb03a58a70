// Package apply applies sets of objects to a cluster by server-side apply, and prunes them. It knows which
// objects are its own, in which order they are applied, and what is not allowed. It keeps no state: the inventory
// is in the status of whoever uses it, written before anything is applied.
package apply

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultParallel keeps a small API server busy; more requests would only wait in its queues.
const defaultParallel = 8

// Applier applies objects to one cluster. It can be used by many goroutines at once. Requests end
// with their context, but discovery of kinds only with the timeout of the client's configuration.
type Applier struct {
	Client    client.Client           // of the cluster; uncached
	Owner     client.FieldOwner       // the only field owner we use
	Namespace string                  // of namespaced objects that name none
	Labels    map[string]string       // for every object, beside the ownership label
	OwnerRefs []metav1.OwnerReference // for every object in Namespace; optional
	Rules     []Rule                  // what may be applied
	Parallel  int                     // how many requests at once; 0 means 8
}

// Change says what an apply did to an object.
type Change string

// An object that somebody else changed between our read and our apply counts as Updated, too.
const (
	Unknown   Change = ""          // it was trusted and not read, so nobody knows what it was before
	Created   Change = "created"   // it did not exist
	Updated   Change = "updated"   // it was different
	Unchanged Change = "unchanged" // it was as it should be; nothing was written
)

// Result is the outcome for one object.
type Result struct {
	Ref    Ref
	Err    error                      // says which object, what is wrong, and what to do
	Change Change                     // if there is no error
	Object *unstructured.Unstructured // as the server has it now; nil on error
}

// Apply applies a set in its order and returns one result for each object. Objects that trusted says yes to are
// known to be ours; all others are read first, and refused if they are somebody else's. If one fails, the others
// are applied nevertheless, unless it is a namespace or a definition: then nothing of a later rank is started. A
// nil trusted trusts none.
func (a *Applier) Apply(ctx context.Context, set *Set, trusted func(Ref) bool) []Result {
	var results []Result
	var failed *Result
	for _, group := range set.rankGroups() {
		if failed != nil {
			results = append(results, notStarted(group, failed.Ref)...)
			continue
		}
		done := a.applyGroup(ctx, set, group, trusted)
		if group[0].rank == rankNamespacesAndDefinitions {
			a.waitForDefinitions(ctx, group, done)
			failed = firstFailed(done)
		}
		results = append(results, done...)
	}
	return results
}

// notStarted gives each object of a group a pending result, since the object it depends on has failed.
func notStarted(group []item, because Ref) []Result {
	var out []Result
	for _, it := range group {
		out = append(out, Result{
			Ref: it.ref, Err: pendingError(fmt.Sprintf("%s is applied after %s, which failed", it.ref, because)),
		})
	}
	return out
}

func firstFailed(results []Result) *Result {
	for i := range results {
		if results[i].Err != nil {
			return &results[i]
		}
	}
	return nil
}

func (a *Applier) applyGroup(ctx context.Context, set *Set, group []item, trusted func(Ref) bool) []Result {
	known := make([]bool, len(group))
	for i, it := range group {
		// Asked here and not in the goroutines: trusted need not be safe for concurrent use.
		known[i] = trusted != nil && trusted(it.ref)
	}
	out := make([]Result, len(group))
	a.runParallel(len(group), func(i int) {
		out[i] = a.applyOne(ctx, group[i], known[i], set.definesKindOf(group[i].ref))
	})
	return out
}

// runParallel calls f for 0 to n-1, at most Parallel of them at the same time, and waits for all.
func (a *Applier) runParallel(n int, f func(i int)) {
	parallel := a.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}
