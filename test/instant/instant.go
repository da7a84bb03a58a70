// Package instant is a whole provider in memory: clusters of it are ready within a moment and cost next to nothing,
// so that thousands of them can be made in a test. Its control planes are a few entries in a map, its machines are
// Nodes in them, and everything that Cluster API asks of a provider is done at once.
//
// It has kinds of its own, for the infrastructure, the control plane and the bootstrap data of clusters, with which it
// fulfils Cluster API's contract v1beta2; a stack whose class is made of them; and the roles that let Cluster
// API and the stack operator use those.
package instant

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
	"github.com/polder-kaas/polder/test/instant/world"
)

// Name of the provider.
const Name = "instant"

// Provider is the instant provider. New makes it. It may be used by many goroutines.
type Provider struct {
	// Port is the one that all clusters' APIs are at; 0 is any. With a port of one's own, clusters outlive the
	// process: the next one serves them again, with their nodes and without what else was stored in them.
	Port int
	// Concurrency is how many objects of a kind are worked on at the same time; 0 is 10.
	Concurrency int

	world  *world.World
	serves atomic.Bool // the APIs of clusters
	claims claims
}

var _ provider.Provider = (*Provider)(nil)

// New makes a provider without clusters.
func New() *Provider { return &Provider{world: world.New()} }

// Describe says what it can do.
func (p *Provider) Describe() provider.Description {
	return provider.Description{
		Name: Name, Title: "Clusters in memory, for tests", Version: "v1",
		Capabilities: []string{"ha-control-plane", "offline", "zones"}, AnyShape: true, Zones: zones(),
	}
}

func zones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

// Validate says what the class has no variable for.
func (p *Provider) Validate(ctx context.Context, in provider.Input) field.ErrorList {
	if err := ctx.Err(); err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	return scsvars.Validate(p.Describe(), in)
}

// Topology sets the variables for the size of machines.
func (p *Provider) Topology(ctx context.Context, in provider.Input) (provider.Topology, error) {
	if err := ctx.Err(); err != nil {
		return provider.Topology{}, err
	}
	return scsvars.Topology(p.Describe(), in)
}

// ClusterCount is how many clusters there are in a namespace.
func (p *Provider) ClusterCount(namespace string) int { return p.world.ClusterCount(namespace) }

// SetSilent chooses the clusters whose APIs take connections and never answer, by the names of their infrastructure;
// nil lets all answer again.
func (p *Provider) SetSilent(is func(types.NamespacedName) bool) { p.world.SetSilent(is) }

// Waiting is how many requests to clusters wait for an answer they will not get, and how many ever have.
func (p *Provider) Waiting() (now, ever int) { return p.world.Waiting() }

// SetupWithManager registers the provider's controllers, and the APIs of its clusters, which are served until the
// manager ends. The manager's scheme must have Cluster API's kinds; that of the provider's own are not needed.
func (p *Provider) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(apiRunnable{p}); err != nil {
		return err
	}
	b := reconcilerBase{client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), world: p.world, claims: p.claims.ofManager()}
	for _, c := range []struct {
		kind kind
		r    reconcile.Reconciler
	}{
		{clusterKind, &clusterReconciler{b}}, {controlPlaneKind, &controlPlaneReconciler{b}}, {machineKind, &machineReconciler{b}}, {configKind, &configReconciler{
			b,
		}},
	} {
		if err := c.kind.setupController(mgr, p.options(), c.r); err != nil {
			return err
		}
	}
	return nil
}

func (p *Provider) options() controller.Options {
	n, unchecked := p.Concurrency, true
	if n == 0 {
		n = 10
	}
	// A process may have several managers, as tests do, one after the other.
	return controller.Options{MaxConcurrentReconciles: n, SkipNameValidation: &unchecked}
}

// apiRunnable is the part of the manager that serves the clusters' APIs.
type apiRunnable struct{ *Provider }

// Start serves until ctx ends, unless another manager does: several planes may have the same provider.
func (s apiRunnable) Start(ctx context.Context) error {
	if !s.serves.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil
	}
	return s.world.Run(ctx, s.Port)
}

// NeedLeaderElection says no, so that the manager starts it before the controllers, which wait for its listener.
func (s apiRunnable) NeedLeaderElection() bool { return false }

// reconcilerBase is what all reconcilers share.
type reconcilerBase struct {
	client    client.Client // reads from a cache
	apiReader client.Reader // reads from the API: Secrets are not cached
	world     *world.World
	claims    managerClaims
}
