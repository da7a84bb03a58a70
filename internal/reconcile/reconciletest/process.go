package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/polder-kaas/polder/internal/reconcile"
)

// stopTimeout is how long a process may take to stop.
const stopTimeout = 20 * time.Second

// process is the subject with all it keeps in memory, as its program would run it.
type process struct {
	transport   *faultTransport
	log         *processLog
	controllers []controller.Controller
	cancel      context.CancelFunc
	ended       chan error // receives the error that the manager ended with
}

// startProcess runs the subject on the objects of a namespace.
func (h *harness) startProcess(ctx context.Context, namespace string, p faultPlan,
	released <-chan struct{}) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	run := &process{
		transport: newFaultTransport(p, cancel, released), log: &processLog{}, cancel: cancel, ended: make(chan error, 1),
	}
	mgr, err := ctrl.NewManager(h.configFor(run.transport), h.managerOptions(namespace, p, run.log))
	if err == nil {
		m := &recordingManager{Manager: mgr, manualReconcile: p.manualReconcile}
		err = h.subject.Setup(ctx, m)
		run.controllers = m.controllers
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("setting up the subject: %w", err)
	}
	go func() { run.ended <- mgr.Start(ctx) }()
	if p.manualReconcile && !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, errors.Join(errors.New("the cache is not filled"), run.stop())
	}
	return run, nil
}

func (h *harness) configFor(w *faultTransport) *rest.Config {
	cfg := rest.CopyConfig(h.api.Config)
	cfg.UserAgent = "reconciletest-subject"
	cfg.ContentType = "application/json" // which isNoopApply and watchWithLoss can read
	if h.subject.User != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: h.subject.User}
	}
	cfg.Wrap(w.wrap)
	return cfg
}

func (h *harness) managerOptions(namespace string, p faultPlan, log *processLog) ctrl.Options {
	namespaces := map[string]cache.Config{namespace: {}}
	for _, n := range h.subject.Namespaces {
		namespaces[n] = cache.Config{}
	}
	o := ctrl.Options{
		Scheme:         h.api.Scheme,
		Logger:         log.logger(),
		MapperProvider: h.mapper,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: namespaces,
		},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  "0",
		Controller:              reconcile.ControllerConfig(),
		GracefulShutdownTimeout: ptr.To[time.Duration](-1), // no limit: those of a crashed process end when they are released
	}
	if h.subject.Cache != nil {
		o.Cache.ByObject = h.subject.Cache(namespace)
	}
	if p.loseEvery > 0 {
		o.Cache.SyncPeriod = ptr.To(resyncPeriod)
	}
	return o
}

// stop stops the manager and waits for its end. It may be called again.
func (p *process) stop() error {
	p.cancel()
	t := time.NewTimer(stopTimeout)
	defer t.Stop()
	select {
	case err := <-p.ended:
		// Put back, so that stop can be called again.
		p.ended <- err
		return err
	case <-t.C:
		return fmt.Errorf("the manager does not end within %s; it is at:\n%s", stopTimeout, reconcilerStacks())
	}
}

// recordingManager records which controllers are added to it; it does not run them if they are called by hand.
type recordingManager struct {
	ctrl.Manager
	manualReconcile bool
	controllers     []controller.Controller
}

// Add implements ctrl.Manager.
func (m *recordingManager) Add(r manager.Runnable) error {
	if c, ok := r.(controller.Controller); ok {
		m.controllers = append(m.controllers, c)
		if m.manualReconcile {
			return nil
		}
	}
	return m.Manager.Add(r)
}
