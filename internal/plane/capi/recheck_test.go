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
	"k8s.io/utils/ptr"
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
	start := time.Unix(1_000_000, 0)
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, c := range map[string]struct {
		components, store metav1.ConditionStatus
		age               time.Duration // of both, when it is looked
		starting          bool
	}{
		"well": {yes, yes, time.Hour, false}, "node-unreachable": {unknown, yes, time.Minute, false}, "just-now": {unknown, yes, recheckInterval, false},
		"known-to-be-ill": {no, yes, time.Hour, false}, "store-ill": {yes, no, time.Minute, false}, "store-unreachable": {yes, unknown, time.Minute, false},
		"starting": {unknown, unknown, time.Hour, true}, "new": {},
	} {
		o := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if c.components != "" {
			since := metav1.NewTime(start.Add(recheckInterval - c.age))
			o.Status.Initialization.ControlPlaneInitialized = ptr.To(!c.starting)
			o.Status.Conditions = []metav1.Condition{
				{Type: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Status: c.components, LastTransitionTime: since},
				{Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: c.store, LastTransitionTime: since},
			}
		}
		b = b.WithObjects(o)
	}
	clock := clocktesting.NewFakeClock(start)
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
