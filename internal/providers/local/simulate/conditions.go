package simulate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podConditions returns the conditions a kubelet keeps, with the time of their last transition. Conditions of others
// are not among them.
func podConditions(pod *corev1.Pod, st corev1.PodStatus, now metav1.Time) []corev1.PodCondition {
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if names := incompleteInitContainers(pod, st.InitContainerStatuses); len(names) > 0 {
		initialized.Status, initialized.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		initialized.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(names, " "))
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	switch names := unreadyContainers(pod, st); {
	case st.Phase == corev1.PodSucceeded:
		initialized.Reason = "PodCompleted"
		ready.Status, ready.Reason = corev1.ConditionFalse, "PodCompleted"
	case st.Phase == corev1.PodFailed:
		ready.Status, ready.Reason = corev1.ConditionFalse, "PodFailed"
	case len(names) > 0:
		ready.Status, ready.Reason = corev1.ConditionFalse, "ContainersNotReady"
		ready.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(names, " "))
	}
	containers := ready
	containers.Type = corev1.ContainersReady
	out := []corev1.PodCondition{initialized, ready, containers}
	// A gate that no controller has answered for would keep the pod from ever being ready.
	for _, g := range pod.Spec.ReadinessGates {
		if findCondition(pod, g.ConditionType) == nil { // nobody else answers for it
			out = append(out, corev1.PodCondition{Type: g.ConditionType, Status: corev1.ConditionTrue})
		}
	}
	for i := range out {
		out[i].LastTransitionTime = now
		if before := findCondition(pod, out[i].Type); before != nil && before.Status == out[i].Status {
			out[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return out
}

func findCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// incompleteInitContainers names the init containers that others still wait for.
func incompleteInitContainers(pod *corev1.Pod, statuses []corev1.ContainerStatus) []string {
	var names []string
	for i, s := range statuses {
		if c := &pod.Spec.InitContainers[i]; !isInitContainerDone(c, s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// unreadyContainers names the containers that do not run: ordinary ones, and sidecars.
func unreadyContainers(pod *corev1.Pod, st corev1.PodStatus) []string {
	var names []string
	for i, s := range st.InitContainerStatuses {
		if isSidecar(&pod.Spec.InitContainers[i]) && !s.Ready {
			names = append(names, s.Name)
		}
	}
	for _, s := range st.ContainerStatuses {
		if !s.Ready {
			names = append(names, s.Name)
		}
	}
	return names
}
