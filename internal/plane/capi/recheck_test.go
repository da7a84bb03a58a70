package capi

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// noEvents is a ClusterCache that nothing happens to.
type noEvents struct {
	clustercache.ClusterCache
	started bool
}

func (n *noEvents) GetClusterSource(string, func(context.Context, client.Object) []ctrl.Request,
	...clustercache.GetClusterSourceOption) source.Source {
	return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		n.started = true
		return nil
	})
}

func TestControlPlanesAreRechecked(t *testing.T) {
	s := runtime.NewScheme()
	if err := controlplanev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s)
	for name, c := range map[string]struct{ components, store metav1.ConditionStatus }{
		"well": {metav1.ConditionTrue, metav1.ConditionTrue}, "node-unreachable": {metav1.ConditionUnknown, metav1.ConditionTrue},
		"known-to-be-ill": {metav1.ConditionFalse, metav1.ConditionTrue}, "store-ill": {metav1.ConditionTrue, metav1.ConditionFalse},
		"store-unreachable": {metav1.ConditionTrue, metav1.ConditionUnknown}, "new": {},
	} {
		o := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if c.components != "" {
			o.Status.Conditions = []metav1.Condition{
				{Type: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Status: c.components},
				{Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: c.store},
			}
		}
		b = b.WithObjects(o)
	}
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	below := &noEvents{}
	cache := recheckingCache{ClusterCache: below, reader: b.Build(), clock: clock}
	if err := cache.GetClusterSource("x", nil).Start(t.Context(), q); err != nil || !below.started {
		t.Fatalf("started: %v, %v", below.started, err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return clock.HasWaiters(), nil }); err != nil {
		t.Fatal(err)
	}
	clock.Step(recheckInterval)
	got := map[string]bool{}
	for range 3 {
		r, _ := q.Get()
		got[r.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"node-unreachable": true, "store-ill": true, "store-unreachable": true}, got); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}
