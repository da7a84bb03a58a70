// Package local is the provider of clusters that are processes on one Linux machine: real
// Kubernetes control planes, simulated nodes, no containers, no virtual machines, no root.
//
// Its controllers run in polderd; each cluster has a host, a process of its own, that outlives
// polderd (package host).
package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/cgroup"
	"github.com/polder-kaas/polder/internal/providers/local/cluster"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/machine"
	"github.com/polder-kaas/polder/internal/providers/local/outside"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

// User is the identity with which the provider acts in the plane.
const User = "polder:provider:local"

// Config is what the provider works with. All fields but Cgroup are needed.
type Config struct {
	Client      func(userAgent string) *rest.Config // all rights; usable once Run is called
	DataDir     string                              // of the plane
	Kubernetes  string                              // built-in version
	Concurrency int
	// Confinement is what the kernel offers to confine clusters; it may take a moment to say.
	Confinement func() hostapi.Confinement
	Cgroup      *cgroup.Parent // nil: none is delegated
	// AllowUnconfined lets customers have clusters where that is too little.
	AllowUnconfined bool
	Trusted         []string // HOST:PORT that clusters may reach though their addresses are not public
	Log             *slog.Logger
}

// Manager is the component of the plane that runs the provider's controllers.
type Manager struct {
	cfg   Config
	ready chan struct{}
}

// New prepares the component.
func New(cfg Config) *Manager { return &Manager{cfg: cfg, ready: make(chan struct{})} }

// Name is the component's name.
func (m *Manager) Name() string { return "provider-local" }

// Ready closes when the provider's caches are filled.
func (m *Manager) Ready() <-chan struct{} { return m.ready }

// Run reconciles until ctx ends. Clusters run on without it.
func (m *Manager) Run(ctx context.Context) error {
	mgr, err := m.newManager()
	if err != nil {
		return fmt.Errorf("setting up the local provider: %w", err)
	}
	if err := m.setupControllers(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the local provider: %w", err)
	}
	// In a goroutine, because the cache is filled only once Start runs.
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(m.ready)
		}
	}()
	return mgr.Start(ctx)
}

func (m *Manager) newManager() (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	rc := m.cfg.Client("polder-provider-local")
	rc.Impersonate = rest.ImpersonationConfig{UserName: User}
	rc.ContentType = "" // custom resources have no protobuf form
	rc.Wrap(unreadable.WrapTransport)
	filter := unreadable.New(scheme)
	mgr, err := ctrl.NewManager(rc, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  filter.FilterInformers(cache.Options{DefaultTransform: cache.TransformStripManagedFields()}),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             reconcile.ControllerConfig(),
	})
	if err != nil {
		return nil, err
	}
	return mgr, filter.AddReporter(mgr, rc)
}

func (m *Manager) setupControllers(ctx context.Context, mgr ctrl.Manager) error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	versions, err := kubeversion.NewRange(m.cfg.Kubernetes)
	if err != nil {
		return err
	}
	hosts := launch.Launcher{
		HostsDir: hostapi.HostsDir(m.cfg.DataDir), Binary: binary,
		Prepare: m.prepareHost,
	}
	watcher := watch.New()
	watcher.Serve = outside.NewRelay(m.cfg.Trusted, m.cfg.Log).Serve
	if err := mgr.Add(watcher); err != nil {
		return err
	}
	o := controller.Options{MaxConcurrentReconciles: m.cfg.Concurrency}
	clusters := &cluster.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Hosts: hosts, Watcher: watcher, Clock: clock.RealClock{},
		Confinement: m.cfg.Confinement, AllowUnconfined: m.cfg.AllowUnconfined,
	}
	if err := clusters.SetupWithManager(ctx, mgr, o); err != nil {
		return err
	}
	return (&machine.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Hosts: hosts, Versions: versions, Watcher: watcher,
		Events: mgr.GetEventRecorder("polder-provider-local"), Clock: clock.RealClock{},
	}).SetupWithManager(mgr, o)
}

// prepareHost confines a host that is about to be started, and bounds it where that can be done.
func (m *Manager) prepareHost(c *exec.Cmd, dir hostapi.Dir) (release func(), err error) {
	release, err = confine.PrepareHost(c, dir, m.cfg.Confinement())
	if err != nil || m.cfg.Cgroup == nil {
		return release, err
	}
	releaseCgroup, err := m.cfg.Cgroup.Assign(c, filepath.Base(string(dir)))
	if err != nil {
		release()
		return nil, err
	}
	return func() { releaseCgroup(); release() }, nil
}

// Roles are the provider's rights: its own kinds, what it must read, and nothing else.
func Roles() []client.Object {
	const name = "polder:provider:local"
	cache := []string{"list", "watch"} // what is only ever read from a cache is not got
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{infrav1.GroupVersion.Group}, Resources: []string{"localclusters", "localmachines"},
					Verbs: append([]string{"patch"}, cache...)},
				{APIGroups: []string{infrav1.GroupVersion.Group},
					Resources: []string{"localclusters/status", "localmachines/status"}, Verbs: []string{"patch"}},
				{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters", "machines"}, Verbs: cache},
				// Only get: bootstrap data are read one by one, and no Secret is cached; namespaces say whose a cluster is.
				{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces"}, Verbs: []string{"get"}},
				// Only get: read once for each control plane.
				{APIGroups: []string{bootstrapv1.GroupVersion.Group}, Resources: []string{"kubeadmconfigs"},
					Verbs: []string{"get"}},
				{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User}},
		},
	}
}
