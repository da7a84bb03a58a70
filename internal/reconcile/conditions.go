package reconcile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DropInvalidConditions drops conditions that the API server would not accept. An operator that came before wrote
// some without a reason; with one of them in the list, no status could ever be written again.
func DropInvalidConditions(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(conditions, func(c metav1.Condition) bool { return c.Reason == "" })
}
