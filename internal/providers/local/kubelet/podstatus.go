package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podStatus is the pod status that the cluster shows for the process behind a mirror pod.
func podStatus(have *corev1.Pod, p *staticPod, address string, at time.Time) corev1.PodStatus {
	s, ready := p.state(), p.isReady()
	// Whole seconds, as the API server stores them: otherwise no status would ever equal what was written.
	started, now := metav1.NewTime(s.StartedAt.Truncate(time.Second)), metav1.NewTime(at.Truncate(time.Second))
	c := corev1.ContainerStatus{
		Name: p.manifest.pod.Spec.Containers[0].Name, Image: p.manifest.pod.Spec.Containers[0].Image,
		ImageID: "polder://built-in",
		Ready:   ready, Started: &ready, RestartCount: int32(min(s.Restarts, 1<<30)), //nolint:gosec // bounded
	}
	phase := corev1.PodRunning
	switch {
	case s.PID != 0:
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
	case s.LastExit != nil:
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: s.LastExit.String()}
	default:
		phase = corev1.PodPending
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if e := s.LastExit; e != nil {
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: int32(e.Code), Reason: "Error", Message: e.String(), FinishedAt: metav1.NewTime(e.At.Truncate(time.Second)), //nolint:gosec // an exit code
		}
	}
	out := corev1.PodStatus{
		Phase: phase, HostIP: address, PodIP: address, StartTime: have.Status.StartTime,
		HostIPs: []corev1.HostIP{{IP: address}}, PodIPs: []corev1.PodIP{{IP: address}},
		ContainerStatuses: []corev1.ContainerStatus{c}, QOSClass: have.Status.QOSClass, ObservedGeneration: have.Generation,
	}
	if out.StartTime == nil {
		out.StartTime = &now
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized,
		corev1.PodReadyToStartContainers} {
		out.Conditions = append(out.Conditions, newCondition(have, t, true, now))
	}
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		out.Conditions = append(out.Conditions, newCondition(have, t, ready, now))
	}
	return out
}

// newCondition makes a condition that keeps the time of its last transition.
func newCondition(have *corev1.Pod, t corev1.PodConditionType, ok bool, now metav1.Time) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: t, Status: corev1.ConditionFalse, LastTransitionTime: now, ObservedGeneration: have.Generation,
	}
	if ok {
		c.Status = corev1.ConditionTrue
	}
	for _, old := range have.Status.Conditions {
		if old.Type == t && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}

func sameStatus(a, b corev1.PodStatus) bool { return equality.Semantic.DeepEqual(a, b) }
