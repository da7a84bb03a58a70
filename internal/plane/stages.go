package plane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/config/crd"
	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/front/planeapi"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/plane/apiserver"
	"github.com/polder-kaas/polder/internal/plane/audit"
	"github.com/polder-kaas/polder/internal/plane/authentication"
	"github.com/polder-kaas/polder/internal/plane/capi"
	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/plane/install"
	"github.com/polder-kaas/polder/internal/plane/kubecontrollers"
	"github.com/polder-kaas/polder/internal/plane/pki"
	planehooks "github.com/polder-kaas/polder/internal/plane/runtimehooks"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/plane/webhooks"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/logging"
	"github.com/polder-kaas/polder/internal/providers/local"
	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/provider"
)

// webhookURL is where webhooks are registered; only the API server's own dialer knows the host.
const webhookURL = "https://" + pki.WebhookHost

// buildStages puts the components together, in the order they start. Later stages stop first, so that controllers
// end before the API they use, and the store ends last.
func (p *Plane) buildStages(ctx context.Context) ([]supervisor.Stage, *deferredChecks, *apiserver.APIServer, error) {
	certs, err := p.newPKI(etcd.Exists(p.storeDir()))
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := crd.All()
	if err != nil {
		return nil, nil, nil, err
	}
	definitions := install.Definitions{
		ClusterAPICRDs: p.manifests.CRDs, ConversionURL: capi.ConversionURL(webhookURL), ConversionCA: certs.ServerCA,
		PolderCRDs: own, Clock: p.cfg.Clock,
	}
	store, err := p.newStore(definitions.Seed)
	if err != nil {
		return nil, nil, nil, err
	}
	webhookServer := webhooks.New(webhooks.Config{
		Socket:      p.dir.Path("webhooks.sock"),
		Certificate: certs.WebhookCertificate,
		ErrorLog:    slog.NewLogLogger(logging.NewLibraryHandler(p.cfg.Log, "webhooks"), slog.LevelInfo),
	})
	login, err := p.prepareRequests()
	if err != nil {
		return nil, nil, nil, err
	}
	checks := newDeferredChecks()
	api := p.newAPIServer(ctx, certs, store, webhookServer, checks)
	sources, err := p.cfg.Stacks.releaseSources()
	if err != nil {
		return nil, nil, nil, err
	}
	catalogue, err := p.prepareShippedStacks(ctx, sources)
	if err != nil {
		return nil, nil, nil, err
	}
	stacks := p.newOperator(api.Client, sources, operator.Webhooks{
		Server: webhookServer.ForManager(), URL: webhookURL, CA: certs.ServerCA, Register: registerWebhook,
	})
	users := ownUsers()
	objects := install.New(install.Config{
		Client:      api.Client,
		Definitions: definitions,
		Roles: slices.Concat(ownRoles(), discoveryRoles(users),
			capi.Roles(p.manifests), local.Roles(), operator.Roles(), operator.CustomerRoles(),
			tenancy.Roles(), planeapi.Roles()),
		Objects: slices.Concat(operator.ProviderObjects(), operator.CustomerPolicies(),
			flowControl(users, runtime.GOMAXPROCS(0)), catalogue),
	})
	controllers := kubecontrollers.New(kubecontrollers.Config{
		Client: api.Client, Informers: api.Informers, SAKey: certs.ServiceAccountKeyFile(), RootCA: certs.ServerCA,
		Quota: &p.quota,
	})
	clusterAPI := capi.New(capi.Config{
		Client:       api.Client,
		Webhooks:     capi.Webhooks{Server: webhookServer.ForManager(), URL: webhookURL, CA: certs.ServerCA},
		Manifests:    p.manifests,
		RuntimeHooks: []planehooks.Handler{newHoldUpgradeHandler(stacks)},
		Concurrency:  p.cfg.Concurrency,
		Clock:        p.cfg.Clock,
	})
	p.capi = clusterAPI
	last := supervisor.Stage{
		api.BootstrapRoles(), controllers, clusterAPI, p.newLocalProvider(api.Client), stacks, p.newBackup(store),
	}
	stages := []supervisor.Stage{{certs, login}, {store, webhookServer}, {api}, {objects}, {p.tenants}, last}
	if stages, err = p.appendFront(stages, api, certs); err != nil {
		return nil, nil, nil, err
	}
	return stages, checks, api, nil
}

// newAPIServer prepares the API.
func (p *Plane) newAPIServer(
	ctx context.Context, certs *pki.PKI, store *etcd.Etcd, hooks *webhooks.Server, checks *deferredChecks,
) *apiserver.APIServer {
	return apiserver.New(ctx, apiserver.Config{
		Listener:         p.listener,
		Etcd:             store.Endpoint(),
		Certificate:      certs.APIServerFile(),
		ClientCA:         certs.ClientCAFile(),
		SAKey:            certs.ServiceAccountKeyFile(),
		EncryptionConfig: certs.EncryptionConfigFile(),
		FrontAuthority:   p.cfg.FrontAuthority,
		AuthConfig:       p.authenticationPath(),
		AuditPolicy:      p.auditPolicyPath(),
		AuditLog:         audit.File(p.dir.Path()),
		WebhookHost:      net.JoinHostPort(pki.WebhookHost, "443"),
		DialWebhook:      hooks.Dial,
		Checks:           checks.list(p.componentNames()...),
		Handlers:         p.handlers(store),
		Warnings:         p.reporter.warnings,
		Route:            p.route,
		Quota:            &p.quota,
		WatchCache:       p.cfg.WatchCache,
		Profiling:        p.cfg.Profiling,
	})
}

func (p *Plane) auditPolicyPath() string { return p.dir.Path("audit-policy.yaml") }

func (p *Plane) authenticationPath() string { return p.dir.Path("authentication.yaml") }

// prepareRequests writes what the API server must know of requests: whose tokens are believed, and what is recorded. It
// returns the component that keeps the first up to date.
func (p *Plane) prepareRequests() (*authentication.Authentication, error) {
	if err := os.MkdirAll(audit.Dir(p.dir.Path()), 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(p.auditPolicyPath(), audit.Policy, 0o600); err != nil {
		return nil, err
	}
	var err error
	if p.tenants, err = p.newTenantPlanes(); err != nil {
		return nil, err
	}
	return authentication.New(authentication.Config{
		File: p.cfg.AuthenticationConfig, Target: p.authenticationPath(), OwnIssuer: apiserver.Issuer,
		Clock: p.cfg.Clock, Log: p.cfg.Log, Report: p.reporter.setLogin,
	})
}

func (p *Plane) storeDir() string { return p.dir.Path("etcd") }

// newStore prepares the store.
func (p *Plane) newStore(seed func(context.Context, clientv3.KV) error) (*etcd.Etcd, error) {
	cfg, err := adjustStore(p.dir.Path(), etcd.Config{
		Dir: p.storeDir(), SocketDir: p.dir.Path(), Log: p.etcdLogger(), Seed: seed, Clock: p.cfg.Clock,
	})
	return etcd.New(cfg), err
}

func (p *Plane) etcdLogger() *zap.Logger { return logging.NewEtcdLogger(p.cfg.Log, p.exitWithReason) }

// newLocalProvider prepares the controllers of local clusters.
func (p *Plane) newLocalProvider(client func(userAgent string) *rest.Config) *local.Manager {
	return local.New(local.Config{
		Client: client, DataDir: p.dir.Path(), Kubernetes: buildinfo.Get().Kubernetes, Concurrency: p.cfg.Concurrency,
		Confinement: p.confinement, Cgroup: p.findCgroup(), AllowUnconfined: p.cfg.Local.AllowUnconfined,
		Trusted: p.cfg.Local.Trusted, Log: p.cfg.Log,
	})
}

// newOperator prepares the operator of stacks and clusters, with the provider that runs in this process.
func (p *Plane) newOperator(
	client func(userAgent string) *rest.Config, sources operator.Releases, hooks operator.Webhooks,
) *operator.Operator {
	v := buildinfo.Get()
	return operator.New(operator.Config{
		Client: client, DataDir: p.dir.Path(), Releases: sources, Metrics: p.metrics, Concurrency: p.cfg.Concurrency,
		Providers: []provider.Provider{local.Provider{
			Version: v.Version, Kubernetes: v.Kubernetes, Confinement: p.confinement, DataDir: p.dir.Path(),
		}},
		Webhooks: hooks,
		Quota:    &p.quota,
		Planes:   p.tenants,
	})
}

// componentNames are the checks of /readyz, in the order components start.
func (p *Plane) componentNames() []string {
	names := []string{
		"certificates", "authentication", "etcd", "webhooks", "apiserver", "crds", "tenant-planes", "roles",
		"kube-controllers", "cluster-api", "provider-local", "operator", "backup",
	}
	if p.rest != nil {
		names = append(names, "rest")
	}
	return names
}

// newPKI prepares the certificates, for all names that the API may be reached under.
func (p *Plane) newPKI(storeExists bool) (*pki.PKI, error) {
	names := p.cfg.TLSNames
	for _, l := range []net.Listener{p.listener, p.rest} {
		if l == nil {
			continue
		}
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
			names = append(names, a.IP.String())
		}
	}
	if h, err := os.Hostname(); err == nil {
		names = append(names, h)
	}
	certs, err := pki.New(pki.Config{
		Dir:         p.dir.Path("pki"),
		StoreExists: storeExists,
		Server:      p.serverURL(),
		Kubeconfig:  p.kubeconfigPath(),
		Names:       names,
		LeafLife:    p.cfg.CertificateLifetime,
		Clock:       p.cfg.Clock,
		OnRenew:     func(file string) { p.cfg.Log.Debug("certificate made", "file", file) },
	})
	if err != nil {
		return nil, fmt.Errorf("preparing certificates: %w", err)
	}
	return certs, nil
}

// deferredChecks break a circle: the API server shows the supervisor's checks, but is itself one of the
// components the supervisor is made with.
type deferredChecks struct {
	mu    sync.Mutex
	check func(ctx context.Context, name string) error
}

func newDeferredChecks() *deferredChecks {
	return &deferredChecks{check: func(context.Context, string) error { return fmt.Errorf("starting") }}
}

func (l *deferredChecks) set(check func(context.Context, string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check = check
}

func (l *deferredChecks) get() func(context.Context, string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check
}

func (l *deferredChecks) list(names ...string) []apiserver.Check {
	var out []apiserver.Check
	for _, n := range names {
		out = append(out, apiserver.Check{
			Name: "polder-" + n, Check: func(ctx context.Context) error { return l.get()(ctx, n) },
		})
	}
	return out
}
