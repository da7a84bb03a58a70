package workloadcluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestLowestVersion(t *testing.T) {
	v := func(s string, n int32) clusterv1.StatusVersion {
		return clusterv1.StatusVersion{Version: s, Replicas: n}
	}
	for want, all := range map[string][]clusterv1.StatusVersion{
		"":        {v("v1.36.3", 0), v("rubbish", 2)},
		"v1.35.7": {v("v1.36.3", 2), v("v1.35.7", 1)},
		"v1.36.3": {v("v1.36.3", 2), v("v1.35.7", 0)},
		"v1.9.1":  {v("v1.10.0", 1), v("v1.9.1", 1)},
		"v1.34.1": {v("v1.34.1", 0), v("v1.35.1", 0)},
	} {
		if got := lowestVersion(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCheckRollout(t *testing.T) {
	ok := func() controlPlane {
		var c controlPlane
		c.Spec.Replicas = ptr.To[int32](3)
		c.Status.ObservedGeneration = 2
		c.Status.Replicas, c.Status.UpToDateReplicas, c.Status.AvailableReplicas = ptr.To[int32](3), ptr.To[int32](3), ptr.To[int32](3)
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: metav1.ConditionFalse, ObservedGeneration: 2}}
		return c
	}
	for name, c := range map[string]struct {
		change func(*controlPlane)
		late   bool
	}{
		"all is done":                  {func(*controlPlane) {}, false},
		"it has not looked":            {func(c *controlPlane) { c.Status.ObservedGeneration = 1 }, true},
		"it rolls":                     {func(c *controlPlane) { c.Status.Conditions[0].Status = metav1.ConditionTrue }, true},
		"nobody knows if it must roll": {func(c *controlPlane) { c.Status.Conditions[0].ObservedGeneration = 1 }, true},
		"one is too many":              {func(c *controlPlane) { c.Status.Replicas = ptr.To[int32](4) }, true},
		"one is old":                   {func(c *controlPlane) { c.Status.UpToDateReplicas = ptr.To[int32](2) }, true},
		"one is away":                  {func(c *controlPlane) { c.Status.AvailableReplicas = ptr.To[int32](2) }, true},
		"one that does not count":      {func(c *controlPlane) { *c = controlPlane{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cp := ok()
			c.change(&cp)
			if got := cp.checkRollout(2); (got != "") != c.late {
				t.Errorf("%q, want late: %t", got, c.late)
			}
		})
	}
}
