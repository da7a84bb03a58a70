package cluster

import (
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
)

// Somebody may take the finalizers off a Cluster; its LocalCluster must not stay for ever.
func TestDeletedThoughTheOwnerIsGone(t *testing.T) {
	r, s, dir := fixture(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	local := s.local.DeepCopy()
	local.Finalizers = []string{infrav1.ClusterFinalizer}
	local.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "gone", UID: "x"}}
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(local).WithStatusSubresource(local).Build()
	key := client.ObjectKeyFromObject(local)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil { // not deleted: nothing is done without an owner
		t.Fatal(err)
	}
	if _, err := os.Stat(string(dir)); err != nil {
		t.Error("the host of a cluster that is not deleted was removed")
	}
	if err := r.Client.Delete(t.Context(), local); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first says that it is not paused
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Client.Get(t.Context(), key, &infrav1.LocalCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(string(dir)); err == nil {
		t.Error("its host's directory is still there")
	}
}
