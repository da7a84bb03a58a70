package providertest

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/provider"
)

// Faulty is a provider around another that goes wrong when it is told to: in its next calls (QueueFaults), in all calls
// for a cluster (SetClusterFault), or because its credentials were revoked (Revoke). It may be used by many goroutines.
//
// A fault that is an error is one of Topology and of Health. Validate cannot say that it does not know: it answers as
// the provider does, unless the fault is that it does not come back.
type Faulty struct {
	provider.Provider

	mu            sync.Mutex
	queued        []Fault
	clusterFaults map[string]Fault
	revoked       bool
	calls         map[string]int // by method, and by cluster
	reached       map[string]int // likewise: those that reached the provider
	released      chan struct{}  // closes when no call is to hang any more
}

var (
	_ provider.Provider = (*Faulty)(nil)
	_ provider.Health   = (*Faulty)(nil)
)

// NewFaulty makes a provider that behaves like another until a fault is set.
func NewFaulty(p provider.Provider) *Faulty {
	return &Faulty{
		Provider: p, clusterFaults: map[string]Fault{}, calls: map[string]int{}, reached: map[string]int{},
		released: make(chan struct{}),
	}
}

// ErrRevoked is what a provider says whose credentials were revoked.
var ErrRevoked = errors.New("401: the credentials were revoked")

// QueueFaults sets the faults of the next calls of Validate and Topology, one after the other; nil is none.
func (f *Faulty) QueueFaults(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queued = append(f.queued, faults...)
}

// SetClusterFault sets the fault of all calls for clusters of a name, until another is set; nil is none.
func (f *Faulty) SetClusterFault(cluster string, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusterFaults[cluster] = fault
}

// Revoke takes the credentials away; Restore gives new ones.
func (f *Faulty) Revoke() { f.setRevoked(true) }

// Restore ends what Revoke has begun.
func (f *Faulty) Restore() { f.setRevoked(false) }

func (f *Faulty) setRevoked(revoked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = revoked
}

// Release ends all calls that hang for good, and lets none hang so any more. Tests call it at their end.
func (f *Faulty) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.released:
	default:
		close(f.released)
	}
}

// Calls is how often a method was called, or any method for a cluster of this name.
func (f *Faulty) Calls(of string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[of]
}

// Reached is how many of those calls reached the provider, whether or not its answer came back.
func (f *Faulty) Reached(of string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reached[of]
}

// Validate calls the provider's, or has the fault that was set.
func (f *Faulty) Validate(ctx context.Context, in provider.Input) (out field.ErrorList) {
	// the error is dropped: Validate cannot return one
	_ = f.call(ctx, "Validate", in, func() { out = f.Provider.Validate(ctx, in) })
	return out
}

// Topology calls the provider's, or has the fault that was set.
func (f *Faulty) Topology(ctx context.Context, in provider.Input) (out provider.Topology, err error) {
	if wrong := f.call(ctx, "Topology", in, func() { out, err = f.Provider.Topology(ctx, in) }); wrong != nil {
		return provider.Topology{}, wrong
	}
	return out, err
}

// Health says that the credentials were revoked, or what the provider says.
func (f *Faulty) Health(ctx context.Context) error {
	f.mu.Lock()
	revoked := f.revoked
	f.mu.Unlock()
	if revoked {
		return ErrRevoked
	}
	if h, ok := f.Provider.(provider.Health); ok {
		return h.Health(ctx)
	}
	return nil
}

// call makes a call, or the fault that was set for it.
func (f *Faulty) call(ctx context.Context, method string, in provider.Input, do func()) error {
	fault := f.nextFault(method, in.Cluster.Name)
	if fault == nil {
		fault = noFault
	}
	return fault(Call{Context: ctx, Method: method, Cluster: in.Cluster.Name, released: f.released, Do: func() {
		do()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reached[method]++
		f.reached[in.Cluster.Name]++
	}})
}

// nextFault counts a call and returns its fault; nil is none.
func (f *Faulty) nextFault(method, cluster string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	f.calls[cluster]++
	switch {
	case f.clusterFaults[cluster] != nil:
		return f.clusterFaults[cluster]
	case len(f.queued) > 0:
		next := f.queued[0]
		f.queued = f.queued[1:]
		return next
	case f.revoked && method == "Topology":
		return Fail(ErrRevoked)
	}
	return nil
}
