package clusteraddon

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/render"
)

const line = "docker-ferrol-1-27-"

var errBroken = errors.New("broken")

// indexer adds indexes to a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.WithIndex(o, field, f)
	return nil
}

func newClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), csv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := lineage.IndexClustersByClass(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// alone returns a reconciler without clients.
func alone() *Reconciler {
	return &Reconciler{Events: events.NewFakeRecorder(16), Clock: clock.RealClock{}, Interval: time.Hour, Timeout: time.Minute, Poll: time.Second}
}

// told returns the events recorded so far.
func told(r *Reconciler) (out []string) {
	for {
		select {
		case e := <-r.Events.(*events.FakeRecorder).Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// newCluster makes Cluster a/demo, with the class of a version in namespace s.
func newCluster(version string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "demo", UID: "cluster", Generation: 1}}
	c.Spec.Topology.ClassRef = clusterv1.ClusterClassRef{Namespace: "s", Name: line + version}
	return c
}

// newRelease makes a release that is ready and has its class.
func newRelease(version string) *csv1.ClusterStackRelease {
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: line + version, UID: "release"}}
	r.Status.Digest = "sha256:" + version
	r.Status.Resources = []csv1.Resource{
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "ClusterClass", Namespace: "s", Name: r.Name, Status: csv1.ResourceSynced},
	}
	return r
}

func newAddon(status csv1.ClusterAddonStatus) *csv1.ClusterAddon {
	return &csv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "cluster-addon-demo", UID: "addon", Generation: 1}, Status: status}
}

func newScope(status csv1.ClusterAddonStatus) *scope {
	o := newAddon(status)
	s := &scope{cluster: newCluster("v1"), release: newRelease("v1"), content: withStages(nil, nil)}
	s.setAddon(o)
	return s
}

func stage(name, action string) stack.Stage { return stack.Stage{Name: name, Action: action} }

// withStages makes a release with stages. With none at all it has one chart.
func withStages(create, upgrade []stack.Stage) *stack.Release {
	r := &stack.Release{Addons: stack.Addons{Charts: map[string]archive.Tree{"": {}}}}
	if create == nil && upgrade == nil {
		return r
	}
	r.Addons.Config = &stack.AddonConfig{AddonStages: map[string][]stack.Stage{stack.AfterControlPlaneInitialized: create, stack.BeforeClusterUpgrade: upgrade}}
	for _, s := range append(append([]stack.Stage{}, create...), upgrade...) {
		r.Addons.Charts[s.Name] = archive.Tree{}
	}
	return r
}

func object(name string) render.Object {
	return render.Object{Value: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "x"}}}
}

func helmHook(name, weight string, events ...string) render.HelmHook {
	h := render.HelmHook{Object: object(name), Events: events}
	if weight != "" {
		h.Value["metadata"].(map[string]any)["annotations"] = map[string]any{helmHookWeightAnnotation: weight}
	}
	return h
}

// cond is a condition without the fields that other tests check.
type cond struct{ Status, Reason, Message string }

func conditionOf(o *csv1.ClusterAddon, name string) cond {
	c := meta.FindStatusCondition(o.Status.Conditions, name)
	if c == nil {
		return cond{}
	}
	if c.ObservedGeneration != o.Generation {
		return cond{Status: "of another generation"}
	}
	return cond{string(c.Status), c.Reason, c.Message}
}

func conditionIs(name string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: "Reason", Message: message}
}
