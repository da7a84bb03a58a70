package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// lostCluster is one whose Cluster is gone.
func lostCluster(c *v1alpha1.WorkloadCluster) {
	c.Status.ClusterUID = "gone"
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterLost, ObservedGeneration: 2,
	})
}

// One whose Cluster did not come with it from another plane is made anew as a lost one is.
func TestRecreateMoved(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseStalled, "", func(c *v1alpha1.WorkloadCluster) {
		c.Annotations = map[string]string{v1alpha1.MovingAnnotation: "there"}
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterMoving, ObservedGeneration: 2,
		})
	}))
	f.expectOutput(exit.OK, "workloadcluster/demo is being made anew\n", "", "recreate", "demo", "--yes")
	m, _ := f.bodies["PATCH"]["metadata"].(map[string]any)
	if a, _ := m["annotations"].(map[string]any); a[v1alpha1.RecreateAnnotation] != "there" {
		t.Errorf("%v", f.bodies["PATCH"])
	}
}

func TestRecreate(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseStalled, "", lostCluster), aWorkload(v1alpha1.PhaseReady, "", withName("well")))
	f.expectOutput(exit.Usage, "", "recreate asks before it gives up a lost cluster, and here is nobody to ask; say --yes", "recreate", "demo")
	f.expectOutput(exit.Usage, "", `cluster "well" is not lost (it is Ready), so there is nothing to make anew; `+
		"to begin with an empty one, delete it and create it again", "recreate", "well", "--yes")
	if f.bodies["PATCH"] != nil {
		t.Errorf("something was changed: %v", f.bodies["PATCH"])
	}
	f.expectOutput(exit.OK, "workloadcluster/demo is being made anew\n", "", "recreate", "demo", "--yes")
	m, _ := f.bodies["PATCH"]["metadata"].(map[string]any)
	if a, _ := m["annotations"].(map[string]any); a[v1alpha1.RecreateAnnotation] != "gone" || m["uid"] != "u1" {
		t.Errorf("%v", f.bodies["PATCH"])
	}
}
