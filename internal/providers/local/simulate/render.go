package simulate

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// templateFunctions are those the stages call, beside kwok's own for addresses. They get a pod as templates see it, and
// return JSON.
func templateFunctions(clk clock.PassiveClock) gotpl.FuncMap {
	return gotpl.FuncMap{
		"PodStatus": func(object any, due bool, hostIPs, podIPs any) (string, error) {
			pod, err := decodePod(object)
			if err != nil {
				return "", err
			}
			s := &podStep{pod: pod, due: due, now: metav1.NewTime(clk.Now())}
			return statusPatch(pod, s.nextStatus(), toStrings(hostIPs), toStrings(podIPs))
		},
		"PullEvent": func(object any) (string, error) {
			pod, err := decodePod(object)
			if err != nil {
				return "", err
			}
			return encodeJSON(imagePullEvent(pod, metav1.NewTime(clk.Now())))
		},
	}
}

func decodePod(object any) (*corev1.Pod, error) {
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, json.Unmarshal(b, pod)
}

func encodeJSON(object any) (string, error) {
	b, err := json.Marshal(object)
	return string(b), err
}

// statusPatch is the strategic merge patch from a pod's status to the next. Reason and message that a condition no
// longer has are set to null, since conditions are merged.
func statusPatch(pod *corev1.Pod, st corev1.PodStatus, hostIPs, podIPs []string) (string, error) {
	conditions := make([]map[string]any, 0, len(st.Conditions))
	for _, c := range st.Conditions {
		conditions = append(conditions, map[string]any{
			"type": c.Type, "status": c.Status, "lastTransitionTime": c.LastTransitionTime, "reason": orNull(c.Reason),
			"message": orNull(c.Message),
		})
	}
	patch := map[string]any{
		"phase": st.Phase, "startTime": st.StartTime, "conditions": conditions, "containerStatuses": st.ContainerStatuses,
	}
	if len(st.InitContainerStatuses) > 0 {
		patch["initContainerStatuses"] = st.InitContainerStatuses
	}
	// Addresses are given once: a pod keeps them for its life.
	if len(hostIPs) > 0 && pod.Status.HostIP == "" {
		patch["hostIP"], patch["hostIPs"] = hostIPs[0], ipList(hostIPs)
	}
	if len(podIPs) > 0 && pod.Status.PodIP == "" {
		patch["podIP"], patch["podIPs"] = podIPs[0], ipList(podIPs)
	}
	return encodeJSON(patch)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// toStrings is a list of addresses; a template's own empty list has none.
func toStrings(list any) []string {
	s, _ := list.([]string)
	return s
}

func ipList(ips []string) []map[string]any {
	out := make([]map[string]any, 0, len(ips))
	for _, ip := range ips {
		out = append(out, map[string]any{"ip": ip})
	}
	return out
}

// imagePullEvent is the event of a pod whose image was not found. Its name is made of the pod's, so that there is one
// only.
func imagePullEvent(pod *corev1.Pod, now metav1.Time) *corev1.Event {
	message := "Failed to pull an image"
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if isWaitingFor(s, errImagePull) {
			message = fmt.Sprintf("Failed to pull image %q: %s", s.Image, s.State.Waiting.Message)
			break
		}
	}
	return &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name + ".image-missing", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Reason: "Failed", Message: message, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now,
		LastTimestamp: now,
		Source:        corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName}, ReportingController: "kubelet",
		ReportingInstance: pod.Spec.NodeName,
	}
}
