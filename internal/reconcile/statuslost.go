package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// StatusLostPredicate matches objects that have lost their status, by hand or by a restore: they must get it
// back. An object without any condition counts as such.
func StatusLostPredicate[T client.Object](conditions func(T) []metav1.Condition) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		t, ok := o.(T)
		return ok && len(conditions(t)) == 0
	})
}
