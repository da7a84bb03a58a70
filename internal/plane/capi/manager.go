package capi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/controllers/remote"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/polder-kaas/polder/internal/plane/runtimehooks"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

// Limits of requests to workload clusters, the defaults of Cluster API's own programs.
const (
	workloadQPS   = 20
	workloadBurst = 30
	// workloadRetry is how soon the connection to a workload cluster that could not be reached is tried again.
	workloadRetry = 2 * time.Second
)

// managerKind has what distinguishes one of the three managers.
type managerKind struct {
	name   string // key of its role in the manifests
	agent  string // the user agent of Cluster API's own program
	scheme func() schemeParts
	cache  func(*runtime.Scheme, string, string, time.Duration) ctrlcache.Options
	client func() client.Options
	remote remoteAccess
	setup  func(context.Context, *manager) error
}

// remoteAccess is how a manager reaches workload clusters: with which Secrets, and what it caches of them.
type remoteAccess struct {
	secrets func(ctrl.Manager) (client.Client, error)
	cache   func() clustercache.CacheOptions
	client  func(agent string, qps float32, burst int) clustercache.ClientOptions
}

// manager is a controller manager that shares the plane's webhook server and converters
// instead of having its own.
type manager struct {
	ctrl.Manager
	kind         managerKind
	server       webhook.Server
	converters   conversion.Registry
	runtimeHooks []runtimehooks.Handler
	concurrency  int
}

func (m *manager) GetWebhookServer() webhook.Server          { return m.server }
func (m *manager) GetConverterRegistry() conversion.Registry { return m.converters }

func (m *manager) run(ctx context.Context) error {
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("running %s manager: %w", m.kind.name, err)
	}
	return nil
}

func (c *ClusterAPI) newManager(kind managerKind, converters conversion.Registry) (*manager, error) {
	scheme, err := newScheme(kind.scheme())
	if err != nil {
		return nil, err
	}
	waiter := newCacheWaiter(scheme)
	clientConfig := c.clientConfigFor(kind)
	clientConfig.Wrap(waiter.wrapTransport) // outside the write limiter: a wait for caches holds no slot
	clientConfig.Wrap(unreadable.WrapTransport)
	filter := unreadable.New(scheme)
	// The filter before the informer that the waiter knows: what it does not let through must not be waited for.
	caches := filter.FilterInformers(waiter.trackInformers(kind.cache(scheme, kind.agent, "", syncPeriod)))
	m, err := ctrl.NewManager(clientConfig, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  caches,
		Client:                 kind.client(),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		WebhookServer:          c.cfg.Webhooks.Server,
		Controller: config.Controller{
			UsePriorityQueue: ptr.To(feature.Gates.Enabled(feature.PriorityQueue)),
			// The three managers have controllers of the same names.
			SkipNameValidation: ptr.To(true),
		},
	})
	if err != nil {
		return nil, err
	}
	// With all rights: Cluster API's published roles are for Events of another kind.
	if err := filter.AddReporter(m, c.cfg.Client("polder-unreadable-objects")); err != nil {
		return nil, err
	}
	return &manager{Manager: m, kind: kind, server: mendingServer{c.cfg.Webhooks.Server, scheme}, converters: converters,
		runtimeHooks: c.cfg.RuntimeHooks, concurrency: c.cfg.Concurrency}, nil
}

// mendingServer lets objects that cannot be read be repaired and deleted, which Cluster API's webhooks would refuse.
type mendingServer struct {
	webhook.Server
	scheme *runtime.Scheme
}

// Register serves a webhook.
func (s mendingServer) Register(path string, hook http.Handler) {
	if w, ok := hook.(*admission.Webhook); ok {
		w.Handler = unreadable.MendOldObject(s.scheme, w.Handler, admissionv1.Update, admissionv1.Delete)
	}
	s.Server.Register(path, hook)
}

// clientConfigFor returns the client configuration of one manager: its own user, with its own role.
func (c *ClusterAPI) clientConfigFor(kind managerKind) *rest.Config {
	rc := c.cfg.Client(remote.DefaultClusterAPIUserAgent(kind.agent))
	rc.Impersonate = rest.ImpersonationConfig{UserName: userName(kind.name)}
	rc.Wrap(c.writeLimiter.wrapTransport)
	rc.ContentType = "" // custom resources have no protobuf form
	rc.WarningHandler = apiwarnings.DefaultHandler(klog.Background().WithName("API Server Warning"))
	return rc
}

// Users are the users that the managers act as.
func Users() []string {
	return []string{userName(core.name), userName(bootstrap.name), userName(controlPlane.name)}
}

// userName is the user that a manager acts as.
func userName(managerName string) string { return "polder:cluster-api:" + managerName }

// controllerOptions are the options of every controller.
func (m *manager) controllerOptions() controller.Options {
	return controller.Options{MaxConcurrentReconciles: m.concurrency}
}

// setupClusterCache connects to workload clusters on behalf of one manager; secrets reads the Secrets that belong
// to them.
func (m *manager) setupClusterCache(
	ctx context.Context,
) (secrets client.Client, clusters clustercache.ClusterCache, err error) {
	r := m.kind.remote
	if secrets, err = r.secrets(m); err != nil {
		return nil, nil, err
	}
	backoff := &connectBackoff{Reader: kubeconfigSecrets{secrets}, clock: clock.RealClock{}}
	options := m.controllerOptions()
	options.MaxConcurrentReconciles *= connectWorkers
	clusters, err = clustercache.SetupWithManager(ctx, m, clustercache.Options{
		SecretClient: backoff, Cache: r.cache(), Client: r.client(m.kind.agent, workloadQPS, workloadBurst),
	}, options)
	if err != nil {
		return nil, nil, err
	}
	backoff.health = clusters.GetHealthCheckingState
	// A new cluster's API comes up within seconds; by default the next try is after half a minute. The interface
	// of ClusterCache lacks this method.
	if c, ok := clusters.(interface{ SetConnectionCreationRetryInterval(time.Duration) }); ok {
		c.SetConnectionCreationRetryInterval(workloadRetry)
	}
	return secrets, clusters, nil
}

// setupMigrator sets up the controller that moves stored objects to the newest version after an upgrade of
// Cluster API.
func (m *manager) setupMigrator(ctx context.Context, kinds map[client.Object]crdmigrator.ByObjectConfig) error {
	r := &crdmigrator.CRDMigrator{Client: m.GetClient(), APIReader: m.GetAPIReader(), Config: kinds}
	return r.SetupWithManager(ctx, m, controller.Options{MaxConcurrentReconciles: 1})
}

// webhookSetup is implemented by all of Cluster API's webhooks.
type webhookSetup interface {
	SetupWebhookWithManager(mgr ctrl.Manager) error
}

func (m *manager) setupWebhooks(all ...webhookSetup) error {
	for _, w := range all {
		if err := w.SetupWebhookWithManager(m); err != nil {
			return fmt.Errorf("webhook %T: %w", w, err)
		}
	}
	return nil
}
