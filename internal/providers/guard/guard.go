// Package guard calls providers, so that one that panics, or does not return, harms its own clusters only: the
// caller gets an error, and goes on.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/provider"
)

// Errors of calls that did not end as they should.
var (
	ErrPanicked = errors.New("the provider's code broke down")
	ErrTimedOut = errors.New("the provider does not answer")
)

// Guard wraps a provider so that its calls always return. The zero value is not usable; see New.
type Guard struct {
	provider provider.Provider
	name     string
	timeout  time.Duration

	// Slots of calls for clusters, by clusterKey, and of calls about the provider itself, which must not wait for
	// those.
	clusterSlots, describeSlots, healthSlots fairness.Slots[string]

	mu              sync.Mutex
	lastDescription provider.Description
}

// maxClusterCalls is how many calls for clusters may be under way. Calls that hang keep their slot, so that a
// provider that hangs for good cannot take ever more memory.
const maxClusterCalls = 256

// maxCallsPerCluster is how many of them may be for one cluster. One for which the provider hangs for good must
// not take the slots of others: thirty such clusters leave room. But it must be possible to call again, since
// nobody can end a call that hangs.
const maxCallsPerCluster = 8

// maxProviderCalls is how many calls to Describe may be under way, and as many to Health.
const maxProviderCalls = 3

// New guards a provider. A call may take as long as timeout. It fails if the provider cannot describe itself.
func New(ctx context.Context, p provider.Provider, timeout time.Duration) (*Guard, error) {
	g := &Guard{
		provider: p, timeout: timeout,
		clusterSlots:  fairness.Slots[string]{PerKey: maxCallsPerCluster, Total: maxClusterCalls},
		describeSlots: fairness.Slots[string]{Total: maxProviderCalls},
		healthSlots:   fairness.Slots[string]{Total: maxProviderCalls},
	}
	d, err := g.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking a provider (%T) who it is: %w", p, err)
	}
	g.name = d.Name
	return g, nil
}

// Name returns the provider's name.
func (g *Guard) Name() string { return g.name }

// Describe asks the provider for its description.
func (g *Guard) Describe(ctx context.Context) (provider.Description, error) {
	d, err := call(ctx, g, &g.describeSlots, "Describe", "", func(context.Context) (provider.Description, error) {
		return copyDescription(g.provider.Describe()), nil
	})
	if err != nil {
		return d, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastDescription = d
	return d, nil
}

// LastDescription returns the last description of the provider without calling it, so that a provider that does
// not answer stops no cluster that needs no call. It is shared, and must not be changed.
func (g *Guard) LastDescription() provider.Description {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lastDescription
}

// Validate asks the provider what is wrong with a cluster.
func (g *Guard) Validate(ctx context.Context, in provider.Input) (field.ErrorList, error) {
	in = copyInput(in)
	return call(ctx, g, &g.clusterSlots, "Validate", clusterKey(in), func(ctx context.Context) (field.ErrorList, error) {
		return g.provider.Validate(ctx, in), nil
	})
}

// Topology asks the provider what the class must be told.
func (g *Guard) Topology(ctx context.Context, in provider.Input) (provider.Topology, error) {
	in = copyInput(in)
	return call(ctx, g, &g.clusterSlots, "Topology", clusterKey(in), func(ctx context.Context) (provider.Topology, error) {
		return copyTopology(g.provider.Topology(ctx, in))
	})
}

// Health asks the provider whether the infrastructure can be used; nil if it has no such check.
func (g *Guard) Health(ctx context.Context) error {
	h, ok := g.provider.(provider.Health)
	if !ok {
		return nil
	}
	_, err := call(ctx, g, &g.healthSlots, "Health", "", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.Health(ctx)
	})
	return err
}

// clusterKey names the cluster that a call is for.
func clusterKey(in provider.Input) string { return in.Cluster.Namespace + "/" + in.Cluster.Name }

// explainBusy returns the error of a call that got no slot. That the caller does not wait any more is no fault of the
// provider.
func explainBusy(parent context.Context, err error, slots *fairness.Slots[string], what string) error {
	if errors.Is(err, fairness.ErrKeyBusy) {
		return fmt.Errorf("%w: %d calls for this cluster have not come to an end", ErrTimedOut, slots.PerKey)
	}
	if err := parent.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %d calls before this one have not come to an end", ErrTimedOut, slots.Total)
}

// call runs f in a goroutine of its own and waits for it as long as a call may take. The goroutine of a call that
// hangs stays, with its slot: Go cannot end it.
func call[T any](
	parent context.Context, g *Guard, slots *fairness.Slots[string], what, cluster string,
	f func(context.Context) (T, error),
) (out T, err error) {
	ctx, cancel := context.WithTimeout(parent, g.timeout)
	release, err := slots.Acquire(ctx, cluster)
	if err != nil {
		cancel()
		return out, explainBusy(parent, err, slots, what)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer release()
		defer cancel()
		a := answer{err: fmt.Errorf("%w: %s ended without an answer", ErrPanicked, what)} // after runtime.Goexit
		// Deferred calls run in reverse: first recover sets the error, then the answer is sent, then the slot is
		// freed.
		defer func() { answers <- a }()
		defer func() {
			if p := recover(); p != nil {
				ctrl.LoggerFrom(ctx).Error(nil, "A provider panicked", "provider", g.name, "call", what, "panic", fmt.Sprint(p),
					"stack", string(debug.Stack()))
				a.err = fmt.Errorf("%w: %s: %.200v", ErrPanicked, what, p)
			}
		}()
		a.value, a.err = f(ctx)
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers: // it returned at the same moment
		return a.value, a.err
	default:
		if err := parent.Err(); err != nil { // the caller does not wait any more, which is no fault of the provider
			return out, fmt.Errorf("%s: %w", what, err)
		}
		return out, fmt.Errorf("%w: %s did not end within %s", ErrTimedOut, what, g.timeout)
	}
}
