// Package capi runs Cluster API inside the plane: its core, kubeadm bootstrap and kubeadm
// control-plane managers with their webhooks, unchanged, from the pinned module.
//
// Each of the three keeps a cache of its own, because each drops other fields from what it
// caches; one cache for all would break them silently. They share one webhook server and one
// Runtime SDK client, and each acts under an identity of its own that has the rights of Cluster
// API's published roles and no more, so that a reference in a customer's object cannot make
// them touch what such an object must not reach.
package capi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
	"github.com/polder-kaas/polder/internal/plane/runtimehooks"
)

// syncPeriod is how often everything is reconciled again even if nothing happened.
const syncPeriod = 10 * time.Minute

// Webhooks is how the managers' webhooks are served and reached.
type Webhooks struct {
	Server webhook.Server
	URL    string                 // base of the URLs they are registered under
	CA     func() ([]byte, error) // authority of the server's certificate
}

// Config says what the managers run on. All fields are needed.
type Config struct {
	Client       func(userAgent string) *rest.Config // all rights; usable once Run is called
	Webhooks     Webhooks
	Manifests    manifests.Index
	RuntimeHooks []runtimehooks.Handler // Go handlers for the runtime hooks of Cluster API
	Concurrency  int                    // objects of one kind worked on at the same time
	Clock        clock.PassiveClock
}

// ClusterAPI is the three managers as one component of the plane.
type ClusterAPI struct {
	cfg          Config
	writeLimiter writeLimiter
	ready        chan struct{}
	probe        *admissionProbe // set before ready closes
	core         atomic.Pointer[ctrlcache.Cache]
}

// New prepares the component.
func New(cfg Config) *ClusterAPI {
	return &ClusterAPI{cfg: cfg, writeLimiter: newWriteLimiter(), ready: make(chan struct{})}
}

// Name is the component's name.
func (c *ClusterAPI) Name() string { return "cluster-api" }

// Ready closes when all caches are filled and admission answers.
func (c *ClusterAPI) Ready() <-chan struct{} { return c.ready }

// SetFeatureGates switches on what Polder needs of Cluster API. The gates belong to the whole
// process, so it is called once, before anything is built.
func SetFeatureGates() error {
	return feature.MutableGates.SetFromMap(map[string]bool{
		string(feature.ClusterTopology): true,
		string(feature.RuntimeSDK):      true,
		string(feature.MachinePool):     true,
		// Taints of worker pools are of no use without it.
		string(feature.MachineTaintPropagation): true,
		// It would reconcile an object at most once a second, and a local cluster would take twice as long. Its
		// other half, to wait until the caches have what was written, is done by cacheWaiter.
		string(feature.ReconcilerRateLimiting): false,
	})
}

// Run builds the managers, then registers their webhooks, then starts them: a manager must not write before the
// webhooks of the others can answer.
func (c *ClusterAPI) Run(ctx context.Context) error {
	managers, err := c.build(ctx)
	if err != nil {
		return fmt.Errorf("setting up Cluster API: %w", err)
	}
	if err := c.registerWebhooks(ctx); err != nil {
		return fmt.Errorf("registering Cluster API's webhooks: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(managers))
	for _, m := range managers {
		go func() { ended <- m.run(ctx) }()
	}
	go c.awaitReady(ctx, managers)
	var all []error
	for range managers {
		all = append(all, <-ended)
		stop() // one has ended: by an error, or because ctx did
	}
	return errors.Join(all...)
}

func (c *ClusterAPI) awaitReady(ctx context.Context, managers []*manager) {
	for _, m := range managers {
		if !m.GetCache().WaitForCacheSync(ctx) {
			return // ctx has ended, or the manager fails and says why
		}
	}
	if c.probe.waitUntilPassing(ctx) == nil {
		close(c.ready)
	}
}

// Cache is what the core manager knows of Clusters and Machines; nil until the managers are built.
func (c *ClusterAPI) Cache() client.Reader {
	if found := c.core.Load(); found != nil {
		return *found
	}
	return nil
}

// Healthy sends admission a request that only Cluster API's own webhook can answer.
func (c *ClusterAPI) Healthy(ctx context.Context) error { return c.probe.check(ctx) }

func (c *ClusterAPI) build(ctx context.Context) ([]*manager, error) {
	var err error
	if c.probe, err = newAdmissionProbe(c.cfg.Client("polder-admission-probe"), c.cfg.Clock); err != nil {
		return nil, err
	}
	registry := conversion.NewRegistry()
	// One conversion webhook serves all kinds, so its scheme has those of all managers.
	union, err := newScheme(coreParts(), bootstrapParts(), controlPlaneParts())
	if err != nil {
		return nil, err
	}
	c.cfg.Webhooks.Server.Register(conversionPath, conversion.NewWebhookHandler(union, registry))
	secrets, err := clusterSecretHandler()
	if err != nil {
		return nil, err
	}
	c.cfg.Webhooks.Server.Register(clusterSecretPath, &admission.Webhook{Handler: secrets})
	var managers []*manager
	for _, kind := range []managerKind{core, bootstrap, controlPlane} {
		m, err := c.newManager(kind, registry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		if err := kind.setup(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		managers = append(managers, m)
	}
	cache := managers[0].GetCache() // that of core
	c.core.Store(&cache)
	return managers, nil
}

var _ ctrl.Manager = (*manager)(nil)
