package stackstatus

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage/advice"
)

// readiness is how an object is, in one word.
type readiness string

const (
	readinessReady    readiness = "Ready"
	readinessWaiting  readiness = "Waiting" // it may become ready by itself
	readinessFailed   readiness = "Failed"  // somebody must act
	readinessDeleting readiness = "Deleting"
)

// health is what an object says of itself.
type health struct {
	State   readiness `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Notes   []string  `json:"notes,omitempty"` // what is worth knowing besides

	steps []nextStep
}

// evaluateConditions reads conditions. Ready has the first of all that is wrong; what is wrong after that is
// often only its consequence. But the source of what is served may be gone without Ready being false.
func evaluateConditions(o *metav1.ObjectMeta, conditions []metav1.Condition) health {
	h := healthOfReady(o, meta.FindStatusCondition(conditions, csv1.ConditionReady))
	leaving := !o.DeletionTimestamp.IsZero()
	if leaving {
		if h.State == readinessReady {
			h = health{Message: "it is being deleted"}
		}
		h.State = readinessDeleting
	}
	if c := currentCondition(o, conditions, csv1.ConditionSourceAvailable); c != nil && c.Status != metav1.ConditionTrue &&
		!leaving {
		if said := h.State != readinessReady && h.Reason == c.Reason; advice.Has(c.Reason) && !said {
			h.Notes = append(h.Notes, cmp.Or(c.Message, c.Reason))
		}
	}
	for _, kind := range []string{csv1.ConditionProviderRefIgnored, csv1.ConditionOldReferences} {
		if c := currentCondition(o, conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			h.Notes = append(h.Notes, cmp.Or(c.Message, c.Type))
		}
	}
	return h
}

// currentCondition is a condition, unless it is of an earlier generation of the object.
func currentCondition(o *metav1.ObjectMeta, conditions []metav1.Condition, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil && c.ObservedGeneration >= o.Generation {
		return c
	}
	return nil
}

// healthOfReady is what the condition Ready says, which may be missing.
func healthOfReady(o *metav1.ObjectMeta, ready *metav1.Condition) health {
	switch {
	case ready == nil:
		return health{State: readinessWaiting, Message: "no controller has looked at it yet"}
	case ready.ObservedGeneration < o.Generation:
		return health{State: readinessWaiting, Message: "no controller has looked at it since it was changed"}
	case ready.Status == metav1.ConditionTrue:
		return health{State: readinessReady, Reason: ready.Reason, Message: ready.Message}
	}
	h := health{State: readinessWaiting, Reason: ready.Reason, Message: cmp.Or(ready.Message, ready.Reason)}
	if advice.IsFailure(ready.Reason) {
		h.State = readinessFailed
	}
	return h
}
