package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/config/samples"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/local"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

// WorkloadClusters, with real Cluster API. Nobody makes machines here, so they stay in the making.
func TestWorkloadCluster(t *testing.T) {
	t.Parallel()
	setStack := func(change map[string]any) reconciletest.Action {
		return func(ctx context.Context, c client.Client, ns string) error {
			return patch(ctx, c, &v1alpha1.WorkloadCluster{}, ns, "demo", map[string]any{"spec": map[string]any{"stack": change}})
		}
	}
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: func(ctx context.Context, mgr ctrl.Manager) error {
			live, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
			if err != nil {
				return err
			}
			g, err := guard.New(ctx, local.Provider{Kubernetes: version}, time.Minute)
			if err != nil {
				return err
			}
			return operator.SetupController(mgr, live, g, 2)
		},
		Kinds:        []client.Object{&v1alpha1.WorkloadCluster{}, &clusterv1.Cluster{}},
		User:         operator.User,
		Namespaces:   []string{v1alpha1.CatalogueNamespace},
		CreateInputs: givenWorkload,
		CheckSettled: settledWorkload,
		Normalize:    normalizeWorkload,
		Timeout:      patience,
		AfterRemoval: recreateWorkload,
		BadInputs: []reconciletest.Fault{
			{
				Name:          "a release that is not there",
				Break:         setStack(map[string]any{"version": "v9"}),
				CheckReported: reconciletest.ExpectReason(&v1alpha1.WorkloadCluster{}, "demo", v1alpha1.ConditionResolved, v1alpha1.ReasonReleaseMissing),
				Repair:        setStack(map[string]any{"version": nil}),
			},
			{
				Name:          "a minor that is not there",
				Break:         setStack(map[string]any{"kubernetesVersion": "1.30"}),
				CheckReported: reconciletest.ExpectReason(&v1alpha1.WorkloadCluster{}, "demo", v1alpha1.ConditionResolved, v1alpha1.ReasonStackMissing),
				Repair:        setStack(map[string]any{"kubernetesVersion": "1.37"}),
			},
		},
		MinRequeueAfter: 2 * time.Minute, // it waits for machines, and looks after three minutes whether it stands still
		MaxEvents:       20,              // Cluster API still waits for machines, and says so again and again
	})
}

// recreateWorkload waits until the loss is reported, and asks for another Cluster, as polder recreate does.
func recreateWorkload(ctx context.Context, c client.Client, ns string) error {
	o := &v1alpha1.WorkloadCluster{}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo"}, o); err != nil {
			return false, err
		}
		applied := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionApplied)
		return applied != nil && applied.Reason == v1alpha1.ReasonClusterLost && o.Status.Phase == v1alpha1.PhaseStalled, nil
	}); err != nil {
		return fmt.Errorf("the loss is not reported, it is %s: %w", o.Status.Phase, err)
	}
	return patch(ctx, c, o, ns, "demo", map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{v1alpha1.RecreateAnnotation: o.Status.ClusterUID},
	}})
}

// givenWorkload makes a stack with a release that seems to be ready, its class, and a WorkloadCluster.
func givenWorkload(ctx context.Context, c client.Client, ns string) error {
	const release = "local-scs-1-37-v1"
	objects, err := samples.Load("local/class.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace(ns)
		if o.GetKind() == "ClusterClass" {
			o.SetName(release)
		}
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scs"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.37"}
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: release}}
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}}
	o.Spec.Provider, o.Spec.Stack = local.Name, v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37"}
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "default", Replicas: ptr.To[int32](2), Zones: []string{"zone-a", "zone-b"}}}
	if err := errors.Join(c.Create(ctx, s), c.Create(ctx, r)); err != nil {
		return err
	}
	before := r.DeepCopy()
	r.Status.Ready, r.Status.KubernetesVersion = ptr.To(true), "v1.37.1"
	r.Status.Resources = []csv1.Resource{
		{Group: clusterv1.GroupVersion.Group, Version: "v1beta2", Kind: "ClusterClass", Namespace: ns, Name: release, Status: csv1.ResourceSynced},
	}
	if err := c.Status().Patch(ctx, r, client.MergeFrom(before)); err != nil {
		return err
	}
	return c.Create(ctx, o)
}

// settledWorkload waits until Cluster API has made all it can of the Cluster, and the status says so.
func settledWorkload(ctx context.Context, c client.Client, ns string) error {
	o, made := &v1alpha1.WorkloadCluster{}, &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: ns, Name: "demo"}
	if err := errors.Join(c.Get(ctx, key, o), c.Get(ctx, key, made)); err != nil {
		return err
	}
	var pools clusterv1.MachineDeploymentList
	if err := c.List(ctx, &pools, client.InNamespace(ns)); err != nil {
		return err
	}
	applied := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != o.Generation || o.Status.Phase != v1alpha1.PhaseCreating {
		return fmt.Errorf("%s: %+v", o.Status.Phase, o.Status.Conditions)
	}
	// Cluster API makes pools together with the control plane. If something interrupts it in between, it waits with
	// them until the control plane is there, which here it never will be; it calls that an upgrade.
	topology := meta.FindStatusCondition(made.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	allMade := len(pools.Items) == 2 || topology != nil && topology.Reason == clusterv1.ClusterTopologyReconciledClusterUpgradingReason
	if made.Spec.ControlPlaneRef.Name == "" || len(made.Spec.Topology.Workers.MachineDeployments) != 2 || !allMade || len(o.Status.Pools) != 1 {
		return fmt.Errorf("the Cluster is not made yet: %+v, %d pools; Cluster API says %+v", made.Spec, len(pools.Items), made.Status.Conditions)
	}
	return nil
}

// normalizeWorkload keeps what is ours: what Cluster API adds to a Cluster, and how far it is, differ.
func normalizeWorkload(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "Cluster":
		for _, field := range [][]string{{"status"}, {"spec", "controlPlaneEndpoint"}, {"spec", "controlPlaneRef"}, {"spec", "infrastructureRef"},
			{"metadata", "annotations"}, {"metadata", "finalizers"}} {
			unstructured.RemoveNestedField(u.Object, field...)
		}
	case "WorkloadCluster":
		unstructured.RemoveNestedField(u.Object, "status", "message") // it quotes Cluster API
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			delete(c.(map[string]any), "message")
		}
		_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions") // as it was read
	}
}
