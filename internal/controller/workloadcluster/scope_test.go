package workloadcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/stack/version"
)

var (
	errBroken = errors.New("broken")
	noon      = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// simple is a provider that accepts everything and adds nothing.
type simple struct{}

func (simple) Describe() provider.Description                           { return provider.Description{Name: "local"} }
func (simple) Validate(context.Context, provider.Input) field.ErrorList { return nil }
func (simple) Topology(context.Context, provider.Input) (provider.Topology, error) {
	return provider.Topology{}, nil
}

func clients(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), clusterv1.AddToScheme(s), csv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&v1alpha1.WorkloadCluster{})
}

// newReconciler makes a reconciler whose time is noon.
func newReconciler(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	c := clients(t, objects...).Build()
	return &Reconciler{Client: c, Live: c, Provider: guarded(t, simple{}), Events: events.NewFakeRecorder(10), Clock: clocktesting.NewFakePassiveClock(noon)}
}

func guarded(t *testing.T, p provider.Provider) *guard.Guard {
	t.Helper()
	g, err := guard.New(t.Context(), p, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newEntry makes an entry of the catalogue that is ready and has a digest of its own.
func newEntry(t *testing.T, name, kubernetes string) lineage.CatalogueEntry {
	t.Helper()
	r, err := version.ParseReleaseName(name)
	if err != nil {
		t.Fatal(err)
	}
	o := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name}}
	o.Status.Ready, o.Status.KubernetesVersion, o.Status.Digest = ptr.To(true), kubernetes, "sha256:"+name
	return lineage.CatalogueEntry{ReleaseName: r, Object: o}
}

const v1, v2 = "local-scs-1-36-v1", "local-scs-1-36-v2"

// bareWorkloadCluster makes the smallest WorkloadCluster.
func bareWorkloadCluster() *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "demo", UID: "5c6d"}}
	o.Spec.ControlPlane.Replicas = ptr.To[int32](1)
	o.Spec.Network = v1alpha1.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/16"}}
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "default"}}
	return o
}

// providerRelease makes a release with a parameter, as providers see it.
func providerRelease() provider.Release {
	return provider.Release{
		Name: "local-scs-1-36-v3", Kubernetes: "v1.36.3", Workers: []string{"default-worker"},
		Variables: []provider.Variable{{Name: "certSANs", Schema: map[string]any{"type": "array"}}},
	}
}

// healthyScope makes a cluster of release v1 that is ready, and has been since eleven.
func healthyScope(t *testing.T) *scope {
	t.Helper()
	s := newScope(bareWorkloadCluster())
	s.cluster, s.addon, s.description = &clusterv1.Cluster{}, &csv1.ClusterAddon{}, simple{}.Describe()
	s.object.Generation, s.object.Spec.Stack = 4, v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelStable}
	s.object.Status.FirstReadyTime = &metav1.Time{Time: noon.Add(-time.Hour)}
	one := newEntry(t, v1, "v1.36.3")
	s.running, s.wanted, s.target, s.catalogue = &one, one, one, &lineage.Catalogue{}
	c := s.cluster
	c.Name, c.Namespace, c.Generation = s.object.Name, s.object.Namespace, 7
	c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.object, v1alpha1.GroupVersion.WithKind("WorkloadCluster"))}
	c.Spec.Topology = clusterv1.Topology{Version: "v1.36.3", ClassRef: clusterv1.ClusterClassRef{Name: v1}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "fd00::1", Port: 6443}
	n := ptr.To[int32](1)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	run := []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 1}}
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: n, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpToDateReplicas: n, Versions: run,
	}
	c.Status.Workers = &clusterv1.WorkersStatus{DesiredReplicas: n, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpToDateReplicas: n, Versions: run}
	c.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ClusterTopologyReconciledCondition, Status: metav1.ConditionTrue, ObservedGeneration: 7},
		{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: noon.Add(-time.Minute)}},
	}
	key := one.Key().String()
	s.addon.Status = csv1.ClusterAddonStatus{Ready: ptr.To(true), Release: key, Target: key, TargetDigest: one.Object.Status.Digest, ClusterGeneration: 7}
	s.addon.Status.Conditions = []metav1.Condition{{Type: csv1.ConditionReady, Status: metav1.ConditionTrue, Reason: csv1.ReasonReady}}
	for _, condition := range readyConditions {
		s.object.Status.Conditions = append(s.object.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "fine", ObservedGeneration: 4, LastTransitionTime: metav1.Time{
				Time: noon.Add(-time.Hour),
			},
		})
	}
	s.tracked = reconcile.Track(s.object)
	return s
}

// failAddons makes the add-ons not ready, for a reason.
func (s *scope) failAddons(reason, message string) {
	s.addon.Status.Ready = ptr.To(false)
	s.addon.Status.Conditions[0] = metav1.Condition{Type: csv1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// wantRelease makes another release the wanted one, while the Cluster keeps its own.
func (s *scope) wantRelease(r lineage.CatalogueEntry) { s.wanted, s.held = r, true }

// setClusterCondition sets a condition of the Cluster.
func (s *scope) setClusterCondition(condition string, status metav1.ConditionStatus, message string) {
	for i, c := range s.cluster.Status.Conditions {
		if c.Type == condition {
			s.cluster.Status.Conditions[i].Status, s.cluster.Status.Conditions[i].Message = status, message
			return
		}
	}
	s.cluster.Status.Conditions = append(s.cluster.Status.Conditions, metav1.Condition{Type: condition, Status: status, Message: message})
}

func (s *scope) condition(name string) metav1.Condition {
	if c := meta.FindStatusCondition(s.object.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}
