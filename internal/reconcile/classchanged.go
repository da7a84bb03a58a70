package reconcile

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ClassChangedPredicate passes events of Clusters that are created, are deleted or change their class, and drops all
// other updates.
func ClassChangedPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*clusterv1.Cluster)
		b, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return ok && ok2 && a.Spec.Topology.ClassRef != b.Spec.Topology.ClassRef
	}}
}
