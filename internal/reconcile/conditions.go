package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions sets the conditions of one object, for the generation that is reconciled.
type Conditions struct {
	object     metav1.Object
	list       *[]metav1.Condition
	trueReason string
}

// NewConditions returns the conditions of an object, of which list is a field. Those that are true have trueReason.
//
// Conditions that the API server would not accept are dropped. An operator that came before wrote some without a
// reason; with one of them in the list, no status could ever be written again.
func NewConditions(object metav1.Object, list *[]metav1.Condition, trueReason string) Conditions {
	*list = slices.DeleteFunc(*list, func(c metav1.Condition) bool { return c.Reason == "" })
	return Conditions{object: object, list: list, trueReason: trueReason}
}

// SetTrue makes a condition true. Its message becomes one line that is short enough to be read.
func (c Conditions) SetTrue(condition, message string) {
	c.Set(metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: c.trueReason, Message: TruncateMessage(message),
	})
}

// SetFalse makes a condition false, for a reason, with a message as above.
func (c Conditions) SetFalse(condition, reason, message string) {
	c.Set(metav1.Condition{
		Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: TruncateMessage(message),
	})
}

// Set sets a condition, whose message is taken as it is.
func (c Conditions) Set(to metav1.Condition) {
	to.ObservedGeneration = c.object.GetGeneration()
	meta.SetStatusCondition(c.list, to)
}

// Get returns a condition, or nil.
func (c Conditions) Get(condition string) *metav1.Condition {
	return meta.FindStatusCondition(*c.list, condition)
}

// Remove removes a condition.
func (c Conditions) Remove(condition string) { meta.RemoveStatusCondition(c.list, condition) }

// Summarize returns a summary of the named conditions. Nothing is set.
func (c Conditions) Summarize(into string, of ...string) metav1.Condition {
	return Summary(*c.list, into, c.object.GetGeneration(), of...)
}

// Summary returns a condition that is true if all of the named conditions are; else it has the status, reason and
// message of the first that is not. A condition that is missing counts as unknown.
func Summary(conditions []metav1.Condition, into string, generation int64, of ...string) metav1.Condition {
	out := metav1.Condition{Type: into, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: generation}
	for _, t := range of {
		c := meta.FindStatusCondition(conditions, t)
		if c == nil {
			out.Status, out.Reason, out.Message = metav1.ConditionUnknown, "NotYetKnown", t+" is not known yet"
			return out
		}
		if c.Status != metav1.ConditionTrue {
			out.Status, out.Reason, out.Message = c.Status, c.Reason, c.Message
			return out
		}
	}
	return out
}
