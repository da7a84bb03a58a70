package workloadcluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Clusters are reconciled when another has to act on a stack, and not after each check of its source.
func TestStackReadyChanged(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason, message string, at time.Duration) client.Object {
		s := &csv1.ClusterStack{}
		s.Status.Conditions = []metav1.Condition{
			{Type: "Other", Status: metav1.ConditionTrue, Reason: message},
			{Type: csv1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: noon.Add(at)}},
		}
		return s
	}
	none := &csv1.ClusterStack{}
	busy := of(metav1.ConditionFalse, csv1.ReasonSourceBusy, "a", 0)
	for name, c := range map[string]struct {
		was, is client.Object
		want    bool
	}{
		"its first look":          {none, busy, true},
		"its status is lost":      {busy, none, true},
		"it has none":             {none, none.DeepCopy(), false},
		"another reason":          {busy, of(metav1.ConditionFalse, "SourceUnreachable", "a", 0), true},
		"it is ready":             {busy, of(metav1.ConditionTrue, csv1.ReasonSourceBusy, "a", 0), true},
		"another message or time": {busy, of(metav1.ConditionFalse, csv1.ReasonSourceBusy, "b", time.Hour), false},
		"no stack at all":         {&v1alpha1.Provider{}, &v1alpha1.Provider{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stackReadyChanged().Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
