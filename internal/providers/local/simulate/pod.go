package simulate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podStep computes the next status of a pod: from its status now, and from whether what it waits for is due.
type podStep struct {
	pod             *corev1.Pod
	declared        exitCodes
	annotationError error // in what the pod declares
	due             bool
	now             metav1.Time
}

// nextStatus returns the status that follows the pod's own: its containers, its phase and its conditions.
func (s *podStep) nextStatus() corev1.PodStatus {
	s.declared, s.annotationError = parseExitCodes(s.pod)
	out := corev1.PodStatus{StartTime: s.pod.Status.StartTime}
	if out.StartTime == nil {
		out.StartTime = &s.now
	}
	out.InitContainerStatuses = s.initContainerStatuses()
	initialized := len(incompleteInitContainers(s.pod, out.InitContainerStatuses)) == 0
	for i := range s.pod.Spec.Containers {
		out.ContainerStatuses = append(out.ContainerStatuses, s.containerStatus(&s.pod.Spec.Containers[i], initialized))
	}
	out.Phase = s.podPhase(out, initialized)
	if out.Phase == corev1.PodSucceeded || out.Phase == corev1.PodFailed {
		s.endSidecars(out.InitContainerStatuses)
	}
	out.Conditions = podConditions(s.pod, out, s.now)
	return out
}

// initContainerStatuses go one after another; a sidecar only has to be started before the next.
func (s *podStep) initContainerStatuses() []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	blocked := false
	for i := range s.pod.Spec.InitContainers {
		c := &s.pod.Spec.InitContainers[i]
		st := currentStatus(c, s.pod.Status.InitContainerStatuses)
		o := outcomeOf(s.pod, c, s.declared, true)
		switch {
		case blocked && !hasStarted(st):
			st = toWaiting(st, podInitializing, "")
		case hasStarted(st):
			if s.due && !isSidecar(c) && !hasSucceeded(st) {
				st = nextContainerStatus(st, o, initRestartPolicy(s.pod), s.now)
			}
		case s.annotationError != nil:
			st = toWaiting(st, createContainerConfigError, s.annotationError.Error())
		case isImageMissing(s.pod, c.Image):
			st = missingImageStatus(st, s.due)
		case isSidecar(c) || !o.exits:
			st = toRunning(st, s.now)
		default:
			st = toTerminated(st, s.now, o.exitCode, s.now)
		}
		if hasSucceeded(st) {
			st.Ready = true
		}
		blocked = blocked || !isInitContainerDone(c, st)
		out = append(out, st)
	}
	return out
}

// containerStatus is the next status of an ordinary container.
func (s *podStep) containerStatus(c *corev1.Container, initialized bool) corev1.ContainerStatus {
	st := currentStatus(c, s.pod.Status.ContainerStatuses)
	switch {
	case hasStarted(st):
		if s.due {
			st = nextContainerStatus(st, outcomeOf(s.pod, c, s.declared, false), s.pod.Spec.RestartPolicy, s.now)
		}
	case !initialized:
		st = toWaiting(st, podInitializing, "")
	case s.annotationError != nil:
		st = toWaiting(st, createContainerConfigError, s.annotationError.Error())
	case isImageMissing(s.pod, c.Image):
		st = missingImageStatus(st, s.due)
	default:
		st = toRunning(st, s.now)
	}
	return st
}

// endSidecars ends the sidecars of a pod that has ended.
func (s *podStep) endSidecars(statuses []corev1.ContainerStatus) {
	for i, st := range statuses {
		if st.State.Running != nil {
			statuses[i] = toTerminated(st, st.State.Running.StartedAt, 0, s.now)
		}
	}
}

// podPhase follows a kubelet's rules.
func (s *podStep) podPhase(st corev1.PodStatus, initialized bool) corev1.PodPhase {
	for _, c := range st.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 && !shouldRestart(initRestartPolicy(s.pod), t.ExitCode) {
			return corev1.PodFailed
		}
	}
	if !initialized {
		return corev1.PodPending
	}
	ended, phase := true, corev1.PodSucceeded
	for _, c := range st.ContainerStatuses {
		if !hasStarted(c) {
			return corev1.PodPending
		}
		t := c.State.Terminated
		ended = ended && t != nil && !shouldRestart(s.pod.Spec.RestartPolicy, t.ExitCode)
		if t != nil && t.ExitCode != 0 {
			phase = corev1.PodFailed
		}
	}
	if !ended {
		return corev1.PodRunning
	}
	return phase
}

// currentStatus is the status a container has, with the image it is to have now.
func currentStatus(c *corev1.Container, statuses []corev1.ContainerStatus) corev1.ContainerStatus {
	for _, s := range statuses {
		if s.Name == c.Name {
			s.Image = c.Image
			return s
		}
	}
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image}
}

// isSidecar says whether an init container goes on running beside the others.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// isInitContainerDone says whether an init container no longer keeps others from their start.
func isInitContainerDone(c *corev1.Container, s corev1.ContainerStatus) bool {
	return hasSucceeded(s) || isSidecar(c) && s.State.Running != nil
}

// initRestartPolicy is the policy for init containers: with the policy Always they restart only after a failure.
func initRestartPolicy(pod *corev1.Pod) corev1.RestartPolicy {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return corev1.RestartPolicyOnFailure
	}
	return pod.Spec.RestartPolicy
}
