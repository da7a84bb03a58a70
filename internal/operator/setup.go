package operator

import (
	"context"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/clusteraddon"
	"github.com/polder-kaas/polder/internal/controller/clusterstack"
	"github.com/polder-kaas/polder/internal/controller/clusterstackrelease"
	"github.com/polder-kaas/polder/internal/controller/customernamespace"
	"github.com/polder-kaas/polder/internal/controller/kubeconfigrequest"
	"github.com/polder-kaas/polder/internal/controller/tenant"
	"github.com/polder-kaas/polder/internal/controller/tenantplane"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/internal/releases/rendering"
	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/internal/workload"
)

// Settings configures the controllers.
type Settings struct {
	Releases    Releases
	Dir         string // where releases are kept on disk
	Concurrency int
	Renderer    string // the program that renders charts; empty: the running one
	// Tenants writes what Tenants get, and reads it without a cache; nil: the manager's own rights are used.
	Tenants client.Client
	// Planes are those of tenants that have one of their own; nil: there are none.
	Planes tenancy.Planes
	// WrapWorkload wraps the transport to workload clusters, unless it is nil.
	WrapWorkload transport.WrapperFunc
}

// Setup registers the controllers that need no provider with a manager. What they must not read from its cache they
// read with a live client that has the same rights.
func Setup(ctx context.Context, mgr ctrl.Manager, s Settings) error {
	live, err := newLiveClient(mgr)
	if err != nil {
		return err
	}
	library, err := releases.New(releases.Config{
		Dir: s.Dir, Default: s.Releases.Default, Directories: s.Releases.Directories, Trusted: s.Releases.Trusted,
		Secrets: live,
	})
	if err != nil {
		return err
	}
	if err := lineage.IndexClustersByClass(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if s.Tenants == nil {
		s.Tenants = live
	}
	events := mgr.GetEventRecorder("polder-operator")
	pool := rendering.New(maxRenderings, s.Renderer)
	clusters := &workload.Clusters{Secrets: live, UserAgent: "polder-operator", WrapTransport: s.WrapWorkload}
	if err := mgr.Add(clusters); err != nil {
		return err
	}
	for _, r := range []interface {
		SetupWithManager(ctrl.Manager, controller.Options) error
	}{
		&clusterstack.Reconciler{
			Client: mgr.GetClient(), Releases: library, Events: events, Clock: clock.RealClock{}, Interval: sourceInterval,
		},
		&clusterstackrelease.Reconciler{
			Client: mgr.GetClient(), Live: live, Releases: library, Renderer: pool, Kinds: s.Releases.Kinds,
			Events: events, Clock: clock.RealClock{}, Interval: classInterval,
		},
		&customernamespace.Reconciler{Client: mgr.GetClient(), Live: live},
		&tenant.Reconciler{Cache: mgr.GetClient(), Live: s.Tenants, Planes: s.Planes},
		&kubeconfigrequest.Reconciler{
			Client: mgr.GetClient(), Live: live, Workload: clusters, Clock: clock.RealClock{}, Events: events,
			// Anybody can make any number of requests for a cluster that does not answer, so few of them may wait.
			Limiter: &fairness.Limiter{PerNamespace: max(1, s.Concurrency/3), MaxWaiting: max(1, s.Concurrency/3)},
		},
	} {
		if err := r.SetupWithManager(mgr, controllerOptions(s.Concurrency)); err != nil {
			return err
		}
	}
	if s.Planes != nil {
		r := &tenantplane.Reconciler{Cache: mgr.GetClient(), Secrets: live, Live: s.Tenants, Planes: s.Planes}
		if err := r.SetupWithManager(mgr, controllerOptions(s.Concurrency)); err != nil {
			return err
		}
	}
	// Its runs wait for workload clusters most of the time.
	workers := addonWorkers * s.Concurrency
	addons := &clusteraddon.Reconciler{
		Client: mgr.GetClient(), Live: live, Releases: library, Renderer: pool, Workload: clusters,
		Events: events, Clock: clock.RealClock{}, Interval: addonInterval, Timeout: stageTimeout, Poll: stagePoll,
		Limiter: &fairness.Limiter{PerNamespace: max(1, workers/3)},
	}
	if err := addons.SetupWithManager(mgr, controllerOptions(workers)); err != nil {
		return err
	}
	return mgr.Add(pruneLibrary(mgr.GetClient(), library))
}

// controllerOptions returns the options of one controller. The backoff after failures is at most a minute: their causes
// are mostly mended elsewhere, where no watch reports it.
func controllerOptions(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		ReconciliationTimeout:   reconcileTimeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](initialBackoff,
			maxBackoff),
	}
}

// pruneLibrary removes releases from disk that no ClusterStackRelease has any more.
func pruneLibrary(c client.Reader, library *releases.Library) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		t := time.NewTicker(pruneInterval)
		defer t.Stop()
		for {
			var l csv1.ClusterStackReleaseList
			err := c.List(ctx, &l)
			// An error of the list removes nothing: with an empty list, all releases would go.
			if err == nil {
				used := map[string]bool{}
				for _, r := range l.Items {
					used[r.Status.Digest] = true
				}
				err = library.RemoveUnused(used)
			}
			if err != nil && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "Removing releases from disk that nobody has")
			}
			select {
			case <-ctx.Done():
				return nil
			case <-t.C:
			}
		}
	})
}

// newLiveClient returns a client without a cache. Its mapper can forget what it knows of kinds, so that a kind that was
// removed, or lost a version, is told from one that is not served at the moment.
func newLiveClient(mgr ctrl.Manager) (client.Client, error) {
	d, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	return client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: workload.NewRESTMapper(d.RESTClient()),
	})
}
