// Package operator runs the controllers of cluster stacks, ClusterStack, ClusterStackRelease and ClusterAddon, and
// those of what customers ask for, with their admission.
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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/controller/clusteraddon"
	"github.com/polder-kaas/polder/internal/controller/workloadcluster"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/provider"
)

// User is whom the operator acts as in the plane.
const User = "polder:operator"

// Config is what the operator works with.
type Config struct {
	Client      func(userAgent string) *rest.Config // all rights; usable once Run is called
	DataDir     string                              // of the plane
	Releases    Releases
	Providers   []provider.Provider // that run in this process
	Webhooks    Webhooks
	Metrics     prometheus.Registerer // for figures of our own
	Concurrency int
}

// Releases says where releases come from and what they may bring.
type Releases struct {
	Default     *releases.ConfiguredSource // for ClusterStacks without a source; may be nil
	Directories map[string]string          // by the names ClusterStacks use
	Trusted     []string                   // registries with private addresses that ClusterStacks may name
	Kinds       []apply.KindPattern        // that releases may bring into the plane
}

// Webhooks is how admission is served and reached.
type Webhooks struct {
	Server   webhook.Server
	URL      string                                                   // base of the URLs they are registered under
	CA       func() ([]byte, error)                                   // authority of the server's certificate
	Register func(context.Context, *rest.Config, client.Object) error // writes the registration
}

// Times that nobody has wanted to change so far.
const (
	sourceInterval   = 5 * time.Minute  // at sources, unless a ClusterStack says otherwise
	classInterval    = 30 * time.Minute // between corrections of classes; changes are seen at once
	addonInterval    = 10 * time.Minute // between corrections in workload clusters
	stageTimeout     = 10 * time.Minute
	stagePoll        = 2 * time.Second
	pruneInterval    = 10 * time.Minute // between removals of releases on disk that nobody has
	maxRenderings    = 2                // at the same time
	initialBackoff   = 10 * time.Millisecond
	maxBackoff       = time.Minute
	presenceRetry    = 200 * time.Millisecond
	presenceTries    = 25              // tries, before somebody is told
	reconcileTimeout = 6 * time.Minute // of one reconciliation: longer than any of its parts may take
)

// Operator is the component of the plane.
type Operator struct {
	cfg               Config
	ready             chan struct{}
	runtimeHookReader func() (client.Reader, error)
}

// New prepares the component.
func New(cfg Config) *Operator {
	o := &Operator{cfg: cfg, ready: make(chan struct{})}
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
		err = Setup(ctx, mgr, Settings{Releases: o.cfg.Releases, Dir: filepath.Join(o.cfg.DataDir, "releases"), Concurrency: o.cfg.Concurrency})
	}
	providers, guardErr := GuardProviders(ctx, o.cfg.Providers)
	if guardErr != nil {
		ctrl.LoggerFrom(ctx).Error(guardErr, "The plane goes on without a provider; nobody acts on its clusters until polderd is started again")
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
		if mgr.GetCache().WaitForCacheSync(ctx) && o.publishProviders(ctx, providers) {
			close(o.ready)
		}
	}()
	f := metricsCollector{mgr.GetClient()}
	if err := o.cfg.Metrics.Register(f); err != nil {
		return fmt.Errorf("registering the stack operator's metrics: %w", err)
	}
	defer o.cfg.Metrics.Unregister(f)
	return mgr.Start(ctx)
}

// setupProviders sets up what serves them.
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
	return mgr.Add(&workloadcluster.MissingProviderMonitor{Client: mgr.GetClient(), Live: live, Events: mgr.GetEventRecorder("polder-operator"), Now: time.Now})
}

// publishProviders writes down which providers there are: whoever finds the plane ready may ask for a cluster at once.
func (o *Operator) publishProviders(ctx context.Context, providers map[string]*guard.Guard) bool {
	live, err := o.liveClient("polder-operator-presence")
	if err != nil {
		return false
	}
	for _, g := range providers {
		k := &heartbeat.Publisher{Client: live, Provider: g, Now: time.Now}
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

// HoldUpgrade answers Cluster API's hook BeforeClusterUpgrade.
func (o *Operator) HoldUpgrade(ctx context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest, response *runtimehooksv1.BeforeClusterUpgradeResponse) error {
	c, err := o.runtimeHookReader()
	if err != nil {
		return err
	}
	return clusteraddon.HoldUpgrade(ctx, c, request, response)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, csv1.AddToScheme, v1alpha1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func (o *Operator) impersonatedConfig(agent string) *rest.Config {
	rc := o.cfg.Client(agent)
	rc.Impersonate = rest.ImpersonationConfig{UserName: User}
	rc.ContentType = "" // custom resources have no protobuf form
	return rc
}

// liveClient is a client without a cache.
func (o *Operator) liveClient(agent string) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(o.impersonatedConfig(agent), client.Options{Scheme: scheme})
}

func (o *Operator) newManager() (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(o.impersonatedConfig("polder-operator"), ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
}
