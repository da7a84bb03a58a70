package simulate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is one look at a pod: what it is like, and whether what it waits for is due.
type step struct {
	pod      *corev1.Pod
	declared exitCodes
	mistake  error // in what the pod declares
	due      bool
	now      metav1.Time
}

// status is what follows the pod's own status: its containers, and all that can be said of them together.
func (s *step) status() corev1.PodStatus {
	s.declared, s.mistake = declaredExitCodes(s.pod)
	out := corev1.PodStatus{StartTime: s.pod.Status.StartTime}
	if out.StartTime == nil {
		out.StartTime = &s.now
	}
	out.InitContainerStatuses = s.initContainers()
	initialized := len(incomplete(s.pod, out.InitContainerStatuses)) == 0
	for i := range s.pod.Spec.Containers {
		out.ContainerStatuses = append(out.ContainerStatuses, s.container(&s.pod.Spec.Containers[i], initialized))
	}
	out.Phase = s.phase(out, initialized)
	if out.Phase == corev1.PodSucceeded || out.Phase == corev1.PodFailed {
		s.endSidecars(out.InitContainerStatuses)
	}
	out.Conditions = conditions(s.pod, out, s.now)
	return out
}

// initContainers go one after another; those that others run beside only have to be started.
func (s *step) initContainers() []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	blocked := false
	for i := range s.pod.Spec.InitContainers {
		c := &s.pod.Spec.InitContainers[i]
		st := current(c, s.pod.Status.InitContainerStatuses)
		o := outcomeOf(s.pod, c, s.declared, true)
		switch {
		case blocked && !begun(st):
			st = waiting(st, podInitializing, "")
		case begun(st):
			if s.due && !sidecar(c) && !succeeded(st) {
				st = next(st, o, initPolicy(s.pod), s.now)
			}
		case s.mistake != nil:
			st = waiting(st, configError, s.mistake.Error())
		case imageMissing(s.pod, c.Image):
			st = pull(st, s.due)
		case sidecar(c) || !o.ends:
			st = running(st, s.now)
		default:
			st = terminated(st, s.now, o.code, s.now)
		}
		if succeeded(st) {
			st.Ready = true
		}
		blocked = blocked || !done(c, st)
		out = append(out, st)
	}
	return out
}

// container is an ordinary container of the pod.
func (s *step) container(c *corev1.Container, initialized bool) corev1.ContainerStatus {
	st := current(c, s.pod.Status.ContainerStatuses)
	switch {
	case begun(st):
		if s.due {
			st = next(st, outcomeOf(s.pod, c, s.declared, false), s.pod.Spec.RestartPolicy, s.now)
		}
	case !initialized:
		st = waiting(st, podInitializing, "")
	case s.mistake != nil:
		st = waiting(st, configError, s.mistake.Error())
	case imageMissing(s.pod, c.Image):
		st = pull(st, s.due)
	default:
		st = running(st, s.now)
	}
	return st
}

// endSidecars ends what ran beside the containers of a pod that has ended.
func (s *step) endSidecars(statuses []corev1.ContainerStatus) {
	for i, st := range statuses {
		if st.State.Running != nil {
			statuses[i] = terminated(st, st.State.Running.StartedAt, 0, s.now)
		}
	}
}

// phase follows a kubelet's rules.
func (s *step) phase(st corev1.PodStatus, initialized bool) corev1.PodPhase {
	for _, c := range st.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 && !restarts(initPolicy(s.pod), t.ExitCode) {
			return corev1.PodFailed
		}
	}
	if !initialized {
		return corev1.PodPending
	}
	ended, phase := true, corev1.PodSucceeded
	for _, c := range st.ContainerStatuses {
		if !begun(c) {
			return corev1.PodPending
		}
		t := c.State.Terminated
		ended = ended && t != nil && !restarts(s.pod.Spec.RestartPolicy, t.ExitCode)
		if t != nil && t.ExitCode != 0 {
			phase = corev1.PodFailed
		}
	}
	if !ended {
		return corev1.PodRunning
	}
	return phase
}

// current is what is known of a container, with the image it is to have now.
func current(c *corev1.Container, statuses []corev1.ContainerStatus) corev1.ContainerStatus {
	for _, s := range statuses {
		if s.Name == c.Name {
			s.Image = c.Image
			return s
		}
	}
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image}
}

// sidecar says whether an init container runs beside the others.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// done says whether an init container no longer keeps others from their start.
func done(c *corev1.Container, s corev1.ContainerStatus) bool {
	return succeeded(s) || sidecar(c) && s.State.Running != nil
}

// initPolicy is the policy for init containers: those of pods that always restart do so only after a failure.
func initPolicy(pod *corev1.Pod) corev1.RestartPolicy {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return corev1.RestartPolicyOnFailure
	}
	return pod.Spec.RestartPolicy
}
