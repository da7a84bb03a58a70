// Package standalone runs a provider in a process of its own, beside a plane: the controller of the
// WorkloadClusters that name it, its Provider object, and its admission webhook.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
	"github.com/polder-kaas/polder/provider"
)

// Config is what the operator of the provider can choose.
type Config struct {
	Plane       *rest.Config
	Concurrency int    // clusters worked on at the same time
	Listen      string // ADDRESS:PORT for admission; port 0 takes any free one
	PublicURL   string // URL under which the plane reaches it; empty means the address of Listen
	Metrics     string // ADDRESS:PORT of metrics; 0 means that none are served
	Namespace   string // of the lease for leader election among several processes; empty means that there is only one
}

// Run serves until ctx ends.
func Run(ctx context.Context, p provider.Provider, cfg Config) error {
	g, err := guard.New(ctx, p, operator.ProviderTimeout)
	if err != nil {
		return err
	}
	admissionHook, err := newAdmissionWebhook(ctx, cfg, g)
	if err != nil {
		return err
	}
	defer admissionHook.close()
	scheme, err := newScheme(p)
	if err != nil {
		return err
	}
	mgr, err := newManager(cfg, scheme, ctrl.Options{
		Metrics:                       metricsserver.Options{BindAddress: cfg.Metrics},
		HealthProbeBindAddress:        "0",
		WebhookServer:                 admissionHook.server,
		LeaderElection:                cfg.Namespace != "",
		LeaderElectionNamespace:       cfg.Namespace,
		LeaderElectionID:              operator.LeasePrefix + g.Name(),
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("setting up provider %s: %w", g.Name(), err)
	}
	// The manager's client reads from a cache, which may be stale; this one reads from the API server.
	live, err := client.New(cfg.Plane, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if c, ok := p.(provider.Controllers); ok {
		err = c.SetupWithManager(mgr)
	}
	admissionHook.register(mgr)
	keeper := heartbeat.Publisher{Provider: g, Admission: admissionHook.providerAdmission()}
	if err := errors.Join(err, operator.SetupProvider(mgr, live, keeper, cfg.Concurrency)); err != nil {
		return fmt.Errorf("setting up provider %s: %w", g.Name(), err)
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with these options, whose caches go on if an object cannot be read.
func newManager(cfg Config, scheme *runtime.Scheme, o ctrl.Options) (ctrl.Manager, error) {
	plane, filter := rest.CopyConfig(cfg.Plane), unreadable.New(scheme)
	plane.Wrap(unreadable.WrapTransport)
	o.Scheme, o.Controller = scheme, reconcile.ControllerConfig()
	o.Cache = filter.FilterInformers(cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	mgr, err := ctrl.NewManager(plane, o)
	if err != nil {
		return nil, err
	}
	return mgr, filter.AddReporter(mgr, plane)
}

// newScheme returns a scheme with our kinds, those of Cluster API, and the provider's own.
func newScheme(p provider.Provider) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	adds := []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, csv1.AddToScheme, v1alpha1.AddToScheme,
	}
	if c, ok := p.(provider.Controllers); ok {
		adds = append(adds, c.AddToScheme)
	}
	for _, add := range adds {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// listen opens the port for admission.
func listen(ctx context.Context, address string) (net.Listener, webhook.Options, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, webhook.Options{}, fmt.Errorf("opening %s for admission: %w; choose another address", address, err)
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, webhook.Options{}, errors.Join(err, l.Close())
	}
	n, err := strconv.Atoi(port)
	return l, webhook.Options{Host: host, Port: n}, err
}
