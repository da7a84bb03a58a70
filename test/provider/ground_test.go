package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/test/testenv"
)

// soon is when something must have happened, on a machine that is slow at times; a call to a provider may
// take callTimeout.
const (
	soon        = 5 * time.Minute
	callTimeout = 3 * time.Second
)

// ground is a namespace in the plane, where the provider is at work.
type ground struct {
	*testing.T
	mgmt     client.Client
	ns       string
	patience time.Duration // how long one cluster may take, if that is longer than usual
}

func newGround(t *testing.T) *ground {
	t.Helper()
	plane := shared.Get(t)
	g := newGroundOn(t, plane)
	var err error
	start.Do(func() { stop, err = g.run(plane) })
	if err != nil {
		t.Fatal(err)
	}
	g.awaitProvider()
	return g
}

// newGroundOn returns a namespace of a plane; whoever asks runs the provider there.
func newGroundOn(t *testing.T, plane *testenv.Plane) *ground {
	t.Helper()
	scheme := testenv.Scheme(t)
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgmt, err := client.New(plane.RESTConfig(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{T: t, mgmt: mgmt, ns: plane.CreateNamespace(t)}
	g.install()
	return g
}

func (g *ground) awaitProvider() {
	g.Helper()
	testenv.Eventually(g, soon, func() error {
		return g.mgmt.Get(g.Context(), client.ObjectKey{Name: "instant"}, &v1alpha1.Provider{})
	})
}

// install brings the kinds, the roles and the stack of the provider into the plane.
func (g *ground) install() {
	g.Helper()
	for _, crd := range instantProvider.CRDs() {
		if err := g.mgmt.Create(g.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
			g.Fatal(err)
		}
	}
	for _, o := range instantProvider.Roles() {
		if err := g.mgmt.Create(g.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			g.Fatal(err)
		}
	}
	stacks, err := instantProvider.ClusterStacks(g.ns, directory)
	if err != nil {
		g.Fatal(err)
	}
	for _, o := range stacks {
		g.create(o)
	}
	for _, o := range stacks {
		testenv.Eventually(g, soon, func() error {
			s := &csv1.ClusterStack{}
			if err := g.mgmt.Get(g.Context(), client.ObjectKeyFromObject(o), s); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady) {
				return fmt.Errorf("stack %s is not ready: %+v", s.Name, s.Status.Conditions)
			}
			return nil
		})
	}
}

// The manager with all controllers of the provider. It starts with the first test, and TestMain ends it.
var (
	start sync.Once
	stop  = func() error { return nil }
)

// run runs the provider for a plane until stop is called.
func (g *ground) run(plane *testenv.Plane) (stop func() error, err error) {
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(plane.RESTConfig(g), ctrl.Options{
		Scheme: g.mgmt.Scheme(), Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: reconcile.ControllerConfig(),
	})
	if err == nil {
		err = instantProvider.SetupWithManager(mgr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var guarded *guard.Guard
	if err == nil {
		guarded, err = guard.New(ctx, faulty, callTimeout)
	}
	if err == nil {
		err = operator.SetupProvider(mgr, g.mgmt, heartbeat.Publisher{Provider: guarded}, 10)
	}
	if err != nil {
		cancel()
		return func() error { return nil }, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

func (g *ground) create(o client.Object) {
	g.Helper()
	// A kind may be established a moment before it is served.
	testenv.Eventually(g, soon, func() error { return g.mgmt.Create(g.Context(), o) })
}

// cluster makes a WorkloadCluster, with one pool of so many machines, or none.
func (g *ground) cluster(name string, workers int32) *v1alpha1.WorkloadCluster {
	g.Helper()
	o := &v1alpha1.WorkloadCluster{}
	o.Namespace, o.Name = g.ns, name
	o.Spec.Provider = "instant"
	o.Spec.Stack = v1alpha1.StackReference{Name: "bare", KubernetesVersion: "1.37"}
	if workers > 0 {
		o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "pool", Replicas: ptr.To(workers), MachineSelection: v1alpha1.MachineSelection{MachineType: "SCS-4V-8"}}}
	}
	o.Spec.Parameters = map[string]apiextensionsv1.JSON{"note": {Raw: []byte(`"of ` + name + `"`)}}
	g.create(o)
	return o
}

// change patches a WorkloadCluster.
func (g *ground) change(name string, f func(*v1alpha1.WorkloadCluster)) {
	g.Helper()
	o := &v1alpha1.WorkloadCluster{}
	if err := g.mgmt.Get(g.Context(), client.ObjectKey{Namespace: g.ns, Name: name}, o); err != nil {
		g.Fatal(err)
	}
	before := o.DeepCopy()
	f(o)
	if err := g.mgmt.Patch(g.Context(), o, client.MergeFrom(before)); err != nil {
		g.Fatal(err)
	}
}

// await waits until a cluster is as it should be for what its spec says now.
func (g *ground) await(name string, right func(*v1alpha1.WorkloadCluster) error) *v1alpha1.WorkloadCluster {
	g.Helper()
	o := &v1alpha1.WorkloadCluster{}
	testenv.Eventually(g, max(soon, g.patience), func() error {
		if err := g.mgmt.Get(g.Context(), client.ObjectKey{Namespace: g.ns, Name: name}, o); err != nil {
			return err
		}
		if o.Status.ObservedGeneration != o.Generation {
			return fmt.Errorf("nobody has seen cluster %s as it is now", name)
		}
		return right(o)
	})
	return o
}

func ready(o *v1alpha1.WorkloadCluster) error {
	if o.Status.Phase != v1alpha1.PhaseReady {
		return fmt.Errorf("cluster %s is %s: %s", o.Name, o.Status.Phase, o.Status.Message)
	}
	return nil
}

// remove deletes a cluster; awaitGone waits for it.
func (g *ground) remove(o client.Object) {
	g.Helper()
	if err := g.mgmt.Delete(g.Context(), o); err != nil {
		g.Fatal(err)
	}
}

func (g *ground) awaitGone(o client.Object) {
	g.Helper()
	testenv.Eventually(g, max(soon, g.patience), func() error {
		err := g.mgmt.Get(g.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		status := ""
		if c, ok := o.(*v1alpha1.WorkloadCluster); ok {
			status = fmt.Sprintf(", %s: %s", c.Status.Phase, c.Status.Message)
		}
		return errors.Join(err, fmt.Errorf("%T %s is still there since %s%s", o, o.GetName(), o.GetDeletionTimestamp(), status))
	})
}
