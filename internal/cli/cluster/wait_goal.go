package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// goal is what is waited for: deletion, a phase, or a condition.
type goal struct {
	deleted   bool
	uid       types.UID // of the cluster whose deletion is waited for; another of its name is not it
	phase     v1alpha1.Phase
	condition string
	status    metav1.ConditionStatus
}

var (
	readyGoal   = goal{condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue}
	deletedGoal = goal{deleted: true}
)

var allPhases = []v1alpha1.Phase{
	v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseReady, v1alpha1.PhaseUpdating,
	v1alpha1.PhaseDegraded, v1alpha1.PhaseStalled, v1alpha1.PhasePaused, v1alpha1.PhaseDeleting,
}

// parseGoal reads ready, deleted, phase=X or condition=T[=S].
func parseGoal(text string) (goal, error) {
	what, rest, _ := strings.Cut(text, "=")
	name, status, stated := strings.Cut(rest, "=")
	switch {
	case text == "ready":
		return readyGoal, nil
	case text == "deleted" || text == "delete": // as kubectl calls it
		return deletedGoal, nil
	case what == "phase":
		for _, p := range allPhases {
			if strings.EqualFold(string(p), rest) {
				return goal{phase: p}, nil
			}
		}
		return goal{}, exit.Errorf(exit.Usage, "there is no phase %q; choose from: %s", rest, joinStrings(allPhases))
	case what == "condition" && name != "" &&
		(!stated || slices.Contains([]string{"true", "false", "unknown"}, strings.ToLower(status))):
		for _, s := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			if strings.EqualFold(string(s), cmp.Or(status, "true")) {
				return goal{condition: name, status: s}, nil
			}
		}
	}
	return goal{}, exit.Errorf(exit.Usage,
		"--for %q is not possible; choose ready, deleted, phase=PHASE or condition=TYPE[=STATUS]", text)
}

// joinStrings is strings.Join for constants of the API.
func joinStrings[T ~string](all []T) string {
	var texts []string
	for _, t := range all {
		texts = append(texts, string(t))
	}
	return strings.Join(texts, ", ")
}

// String completes the sentence that the cluster is not something yet.
func (g goal) String() string {
	switch {
	case g.deleted:
		return "deleted"
	case g.phase != "":
		return "in phase " + string(g.phase)
	case g == readyGoal:
		return "ready"
	}
	return fmt.Sprintf("at condition %s=%s", g.condition, g.status)
}

// flag is how wait is told of the goal.
func (g goal) flag() string {
	switch {
	case g.deleted:
		return " --for deleted"
	case g.phase != "":
		return " --for phase=" + string(g.phase)
	case g == readyGoal:
		return ""
	}
	return fmt.Sprintf(" --for condition=%s=%s", g.condition, g.status)
}

// isReached says whether the cluster is what is waited for. Only what the plane says of the spec as it is now counts.
func (g goal) isReached(c *v1alpha1.WorkloadCluster) bool {
	if g.deleted {
		return g.uid != "" && g.uid != c.UID
	}
	if c.Status.ObservedGeneration != c.Generation {
		return false
	}
	if g.phase != "" {
		return c.Status.Phase == g.phase
	}
	cond := meta.FindStatusCondition(c.Status.Conditions, g.condition)
	return cond != nil && cond.ObservedGeneration == c.Generation && cond.Status == g.status
}

// blockedReason is why the goal will not be reached while nobody acts; nil if it may be. Some of it may pass: what
// keeps a cluster that no customer can help with, such as a provider that does not answer, is tried again by the plane.
func (g goal) blockedReason(c *v1alpha1.WorkloadCluster) (why error, mayRecover bool) {
	s := c.Status
	leaving := !c.DeletionTimestamp.IsZero()
	switch {
	case leaving && !g.deleted && g.phase != v1alpha1.PhaseDeleting:
		return fmt.Errorf("cluster %q is being deleted, so it will not be %s", c.Name, g), false
	case s.ObservedGeneration != c.Generation || g.deleted && !leaving:
		return nil, false
	case s.Phase == v1alpha1.PhaseStalled && g.phase != v1alpha1.PhaseStalled:
		return fmt.Errorf("cluster %q is stalled: %s", c.Name, describeSituation(s)), s.Actor != v1alpha1.Customer
	case s.Phase == v1alpha1.PhasePaused && g.phase != v1alpha1.PhasePaused:
		return fmt.Errorf("cluster %q is paused, so nothing goes on; set spec.paused to false", c.Name), false
	}
	return nil, false
}

// missingError is what to say if the cluster is not there.
func (g goal) missingError(name string, was bool) error {
	switch {
	case g.deleted:
		return nil
	case was:
		return fmt.Errorf("cluster %q was deleted meanwhile", name)
	}
	return errNoCluster
}

// errNoCluster says that there never was one.
var errNoCluster = errors.New("there is no such cluster")

// describeSituation is what happens, who must act, and how.
func describeSituation(s v1alpha1.WorkloadClusterStatus) string {
	return output.JoinNonEmpty("; ", strings.TrimSuffix(output.Sanitize(s.Message), "."), describeActor(s))
}

// describeActor is empty if nobody has to.
func describeActor(s v1alpha1.WorkloadClusterStatus) string {
	who := ""
	switch s.Actor {
	case v1alpha1.Customer:
		who = "you must act"
	case v1alpha1.PlatformOperator:
		who = "the plane's operator must act"
	case v1alpha1.Nobody, "":
	default:
		who = string(s.Actor) + " must act"
	}
	return output.JoinNonEmpty(": ", who, output.Sanitize(s.NextStep))
}
