package reconcile_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/polder-kaas/polder/internal/reconcile"
)

func TestClassChangedPredicate(t *testing.T) {
	of := func(namespace, class, version string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{}
		c.Spec.Topology.ClassRef, c.Spec.Topology.Version = clusterv1.ClusterClassRef{Namespace: namespace, Name: class}, version
		return c
	}
	p := reconcile.ClassChangedPredicate()
	for name, c := range map[string]struct {
		old, now client.Object
		want     bool
	}{
		"nothing":           {of("a", "k", "v1"), of("a", "k", "v1"), false},
		"another version":   {of("a", "k", "v1"), of("a", "k", "v2"), false},
		"another class":     {of("a", "k", "v1"), of("a", "l", "v1"), true},
		"another namespace": {of("a", "k", "v1"), of("", "k", "v1"), true},
		"no cluster":        {&corev1.Node{}, of("a", "k", "v1"), false},
	} {
		if got := p.Update(event.UpdateEvent{ObjectOld: c.old, ObjectNew: c.now}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !p.Create(event.CreateEvent{Object: of("a", "k", "v1")}) || !p.Delete(event.DeleteEvent{Object: of("a", "k", "v1")}) {
		t.Error("it is not heard of clusters that come and go")
	}
}
