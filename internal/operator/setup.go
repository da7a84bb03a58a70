package operator

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/addon"
	"github.com/polder-kaas/polder/internal/controller/clusterstack"
	"github.com/polder-kaas/polder/internal/controller/release"
	"github.com/polder-kaas/polder/internal/controller/usage"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/internal/rendering"
	"github.com/polder-kaas/polder/internal/workload"
)

// setup registers the three controllers.
func (o *Operator) setup(ctx context.Context, mgr ctrl.Manager) error {
	live, err := o.live("polder-operator")
	if err != nil {
		return err
	}
	library, err := releases.New(releases.Config{
		Dir: o.releasesDir(), Default: o.cfg.Releases.Default, Directories: o.cfg.Releases.Directories, Trusted: o.cfg.Releases.Trusted, Secrets: live,
	})
	if err != nil {
		return err
	}
	if err := usage.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	events := mgr.GetEventRecorder("polder-operator")
	pool := rendering.New(renderings)
	options := controller.Options{MaxConcurrentReconciles: o.cfg.Concurrency}
	for _, r := range []interface {
		SetupWithManager(ctrl.Manager, controller.Options) error
	}{
		&clusterstack.Reconciler{Client: mgr.GetClient(), Releases: library, Events: events, Interval: lookInterval},
		&release.Reconciler{Client: mgr.GetClient(), Live: live, Releases: library, Renderer: pool, Kinds: o.cfg.Releases.Kinds, Events: events, Interval: classInterval},
		&addon.Reconciler{
			Client: mgr.GetClient(), Live: live, Releases: library, Renderer: pool, Workload: &workload.Clusters{Secrets: live, Agent: "polder-operator"},
			Events: events, Interval: addonInterval, Timeout: stageTimeout, Poll: stagePoll,
		},
	} {
		if err := r.SetupWithManager(mgr, options); err != nil {
			return err
		}
	}
	return mgr.Add(tidy(mgr.GetClient(), library))
}

// tidy removes releases from disk that no ClusterStackRelease has any more.
func tidy(c client.Reader, library *releases.Library) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		t := time.NewTicker(tidyInterval)
		defer t.Stop()
		for {
			var l csv1.ClusterStackReleaseList
			err := c.List(ctx, &l)
			if err == nil {
				used := map[string]bool{}
				for _, r := range l.Items {
					used[r.Status.Digest], used[r.Spec.Digest] = true, true
				}
				err = library.Keep(used)
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
