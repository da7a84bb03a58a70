package kubeconfigrequest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestRequestsForCluster(t *testing.T) {
	called := func(name string, change func(*v1alpha1.KubeconfigRequest)) *v1alpha1.KubeconfigRequest {
		o := newRequest(change)
		o.Name = name
		return o
	}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(
		called("waits", func(*v1alpha1.KubeconfigRequest) {}),
		called("answered", func(o *v1alpha1.KubeconfigRequest) {
			o.Status.SecretName, o.Status.ExpirationTime = "s", ptr.To(metav1.NewTime(at))
		}),
		called("other-cluster", func(o *v1alpha1.KubeconfigRequest) { o.Spec.ClusterName = "dev" }),
		called("other-namespace", func(o *v1alpha1.KubeconfigRequest) { o.Namespace = "others" }),
	).Build()
	var got []string
	for _, r := range (&Reconciler{Client: c}).openRequestsForCluster(t.Context(), newCluster()) {
		got = append(got, r.String())
	}
	if d := cmp.Diff([]string{"team/waits"}, got); d != "" {
		t.Error(d)
	}
}

func TestClusterChanged(t *testing.T) {
	for title, c := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"initialized":       {func(k *clusterv1.Cluster) { k.Status.Initialization.ControlPlaneInitialized = nil }, true},
		"got an endpoint":   {func(k *clusterv1.Cluster) { k.Spec.ControlPlaneEndpoint.Host = "" }, true},
		"got an owner":      {func(k *clusterv1.Cluster) { k.OwnerReferences = nil }, true},
		"some other status": {func(k *clusterv1.Cluster) { k.Status.ObservedGeneration = 7 }, false},
		"an owner among many": {func(k *clusterv1.Cluster) {
			k.OwnerReferences = append(k.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, false},
	} {
		t.Run(title, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: newCluster(c.change), ObjectNew: newCluster()}
			if got := clusterChanged().Update(e); got != c.want {
				t.Errorf("heard: %v, want %v", got, c.want)
			}
		})
	}
	if !clusterChanged().Create(event.CreateEvent{Object: newCluster()}) || clusterChanged().Delete(event.DeleteEvent{Object: newCluster()}) {
		t.Error("clusters that come are not heard of, or those that go are")
	}
}

// With a WorkloadCluster go those that have credentials, too.
func TestAllRequestsForCluster(t *testing.T) {
	w := newWorld(t, newRequest())
	w.run()
	if got := w.requestsForCluster(t.Context(), newWorkloadCluster()); len(got) != 1 || !isAnswered(w.request()) {
		t.Errorf("%v", got)
	}
}

func TestCreatedOrDeleted(t *testing.T) {
	if p := createdOrDeleted(); !p.Create(event.CreateEvent{}) || p.Update(event.UpdateEvent{}) || !p.Delete(event.DeleteEvent{}) || p.Generic(event.GenericEvent{}) {
		t.Error("others than those that come and go are heard of")
	}
}
