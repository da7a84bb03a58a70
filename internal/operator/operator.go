// Package operator runs the controllers of cluster stacks (ClusterStack, ClusterStackRelease and ClusterAddon), those
// of WorkloadClusters and KubeconfigRequests, and their admission.
package operator

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/controller/clusteraddon"
	"github.com/polder-kaas/polder/internal/controller/tenant"
	"github.com/polder-kaas/polder/internal/controller/workloadcluster"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/provider"
)

// Users that the operator acts as in the plane. What releases bring is written by User, so another gives rights to
// people: whatever a release finds a way to write, it is none.
const (
	User       = "polder:operator"
	TenantUser = "polder:tenants"
)

// Config configures the operator.
type Config struct {
	Client      func(userAgent string) *rest.Config // with all rights; usable once Run is called
	DataDir     string                              // data directory of the plane
	Releases    Releases
	Providers   []provider.Provider // providers that run in this process
	Webhooks    Webhooks
	Metrics     prometheus.Registerer // where the operator's own metrics are registered
	Planes      tenancy.Planes        // of tenants with one of their own; nil: there are none
	Quota       QuotaSource           // is told where to read clusters and providers; may be nil
	Concurrency int
}

// QuotaSource is told where quotas read clusters and providers.
type QuotaSource interface {
	Set(cache, live client.Reader)
}

// Releases says where releases come from and what they may contain.
type Releases struct {
	Default     *releases.ConfiguredSource // for ClusterStacks without a source; may be nil
	Directories map[string]string          // by the names ClusterStacks use
	Trusted     []string                   // registries with private addresses that ClusterStacks may name
	Kinds       []apply.KindPattern        // kinds that releases may bring into the plane
}

// Webhooks says how admission is served and reached.
type Webhooks struct {
	Server   webhook.Server
	URL      string                                                   // base of the URLs they are registered under
	CA       func() ([]byte, error)                                   // authority of the server's certificate
	Register func(context.Context, *rest.Config, client.Object) error // writes a webhook configuration
}

// Times that nobody has wanted to change so far.
const (
	sourceInterval   = 5 * time.Minute  // between reads of a source, unless a ClusterStack says otherwise
	classInterval    = 30 * time.Minute // between corrections of classes; changes are seen at once
	addonInterval    = 10 * time.Minute // between corrections in workload clusters
	stageTimeout     = 10 * time.Minute
	stagePoll        = 2 * time.Second
	pruneInterval    = 10 * time.Minute // between removals of unused releases from disk
	maxRenderings    = 2                // at the same time
	addonWorkers     = 3                // for each worker of other kinds
	initialBackoff   = 10 * time.Millisecond
	maxBackoff       = time.Minute
	presenceRetry    = 200 * time.Millisecond
	presenceTries    = 25              // tries before an error is logged
	reconcileTimeout = 6 * time.Minute // for one reconciliation: longer than any of its parts may take
)

// Operator is the component of the plane.
type Operator struct {
	cfg               Config
	ready             chan struct{}
	runtimeHookReader func() (client.Reader, error)
	unreadable        *unreadable.Filter // of the manager
}

// New makes the component.
func New(cfg Config) *Operator {
	o := &Operator{cfg: cfg, ready: make(chan struct{})}
	// The runtime hook reads live: from a stale ClusterAddon it could let an upgrade start too early.
	o.runtimeHookReader = sync.OnceValues(func() (client.Reader, error) { return o.liveClient("polder-operator-hooks") })
	return o
}

// Name is the component's name.
func (o *Operator) Name() string { return "operator" }

// Ready closes when the caches are filled and admission is registered.
func (o *Operator) Ready() <-chan struct{} { return o.ready }

// Run reconciles until ctx ends.
func (o *Operator) Run(ctx context.Context) error {
	mgr, err := o.newManager()
	if err == nil {
		err = o.setup(ctx, mgr)
	}
	// A provider that fails must not keep the plane from starting: clusters of the other providers depend on it.
	providers, guardErr := GuardProviders(ctx, o.cfg.Providers)
	if guardErr != nil {
		ctrl.LoggerFrom(ctx).Error(guardErr,
			"The plane goes on without a provider; nobody acts on its clusters until polderd is started again")
	}
	if err == nil {
		err = o.setupProviders(mgr, providers)
	}
	if err == nil {
		err = o.registerAdmission(ctx, mgr, providers)
	}
	if err != nil {
		return fmt.Errorf("setting up the stack operator: %w", err)
	}
	go func() {
		// Not before the caches are filled: admission would refuse objects for what it does not know yet.
		if mgr.GetCache().WaitForCacheSync(ctx) && o.publishProviders(ctx, providers) {
			close(o.ready)
		}
	}()
	f := metricsCollector{mgr.GetClient(), o.unreadable}
	if err := o.cfg.Metrics.Register(f); err != nil {
		return fmt.Errorf("registering the stack operator's metrics: %w", err)
	}
	defer o.cfg.Metrics.Unregister(f)
	return mgr.Start(ctx)
}

// setup sets up the controllers that need no provider.
func (o *Operator) setup(ctx context.Context, mgr ctrl.Manager) error {
	tenants, err := o.liveClientOf(TenantUser, "polder-operator-tenants")
	if err != nil {
		return err
	}
	return Setup(ctx, mgr, Settings{
		Releases: o.cfg.Releases, Dir: filepath.Join(o.cfg.DataDir, "releases"), Concurrency: o.cfg.Concurrency,
		Tenants: tenants, Planes: o.cfg.Planes,
	})
}

// setupProviders sets up the controllers, webhooks and heartbeats of providers.
func (o *Operator) setupProviders(mgr ctrl.Manager, providers map[string]*guard.Guard) error {
	live, err := o.liveClient("polder-operator-customers")
	if err != nil {
		return err
	}
	for _, g := range providers {
		if err := SetupProvider(mgr, live, heartbeat.Publisher{Provider: g}, o.cfg.Concurrency); err != nil {
			return err
		}
	}
	if err := o.setupProviderWebhooks(mgr); err != nil {
		return err
	}
	return mgr.Add(&workloadcluster.MissingProviderMonitor{
		Client: mgr.GetClient(), Live: live, Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("polder-operator"),
	})
}

// publishProviders writes the Provider objects before the plane is ready: whoever finds it ready may create a cluster
// at once, and admission would refuse it for an unknown provider.
func (o *Operator) publishProviders(ctx context.Context, providers map[string]*guard.Guard) bool {
	live, err := o.liveClient("polder-operator-presence")
	if err != nil {
		return false
	}
	for _, g := range providers {
		k := &heartbeat.Publisher{Client: live, Provider: g, Clock: clock.RealClock{}}
		for tries, err := 1, k.PublishOnce(ctx); err != nil; tries, err = tries+1, k.PublishOnce(ctx) {
			if tries == presenceTries {
				ctrl.LoggerFrom(ctx).Error(err, "The plane is not ready before its provider is known", "provider", g.Name())
			}
			select {
			case <-ctx.Done():
				return false
			case <-time.After(presenceRetry):
			}
		}
	}
	return true
}

// HoldUpgrade answers the runtime hook BeforeClusterUpgrade of Cluster API.
func (o *Operator) HoldUpgrade(ctx context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest,
	response *runtimehooksv1.BeforeClusterUpgradeResponse) error {
	c, err := o.runtimeHookReader()
	if err != nil {
		return err
	}
	return clusteraddon.HoldUpgrade(ctx, c, request, response)
}

// newScheme returns a scheme with all kinds that the operator reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, csv1.AddToScheme, v1alpha1.AddToScheme,
		admissionv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// impersonatedConfig returns a client configuration with the rights of a user, which are fewer than those of
// Config.Client.
func (o *Operator) impersonatedConfig(user, agent string) *rest.Config {
	rc := o.cfg.Client(agent)
	rc.Impersonate = rest.ImpersonationConfig{UserName: user}
	rc.ContentType = "" // custom resources have no protobuf form
	return rc
}

// liveClient returns a client without a cache.
func (o *Operator) liveClient(agent string) (client.Client, error) {
	return o.liveClientOf(User, agent)
}

// liveClientOf returns a client without a cache that has the rights of a user.
func (o *Operator) liveClientOf(user, agent string) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(o.impersonatedConfig(user, agent), client.Options{Scheme: scheme})
}

// newManager makes the manager of all controllers here. The plane serves its metrics and its health.
func (o *Operator) newManager() (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	o.unreadable = unreadable.New(scheme)
	rc := o.impersonatedConfig(User, "polder-operator")
	rc.Wrap(unreadable.WrapTransport)
	// Managed fields take memory, and no controller here reads them from the cache.
	caching := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if caching.ByObject, err = tenant.CacheByObject(); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(rc, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  o.unreadable.FilterInformers(caching),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             reconcile.ControllerConfig(),
	})
	if err != nil {
		return nil, err
	}
	return mgr, o.unreadable.AddReporter(mgr, rc)
}
