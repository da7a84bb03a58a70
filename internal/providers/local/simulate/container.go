package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of containers that wait, as a kubelet gives them.
const (
	podInitializing            = "PodInitializing"
	errImagePull               = "ErrImagePull"
	imagePullBackOff           = "ImagePullBackOff"
	crashLoopBackOff           = "CrashLoopBackOff"
	createContainerConfigError = "CreateContainerConfigError"
)

// nextContainerStatus returns the status that follows a container's own, once it is due; the same, if nothing follows.
func nextContainerStatus(s corev1.ContainerStatus, o outcome, policy corev1.RestartPolicy,
	now metav1.Time) corev1.ContainerStatus {
	switch t := s.State.Terminated; {
	case s.State.Running != nil && o.exits:
		return toTerminated(s, s.State.Running.StartedAt, o.exitCode, now)
	case t != nil && shouldRestart(policy, t.ExitCode) && s.RestartCount == 0:
		s.LastTerminationState = s.State
		return toRestarted(s, now) // a kubelet does not wait before the first restart
	case t != nil && shouldRestart(policy, t.ExitCode):
		s.LastTerminationState = s.State
		return toWaiting(s, crashLoopBackOff, "back-off restarting failed container="+s.Name)
	case isWaitingFor(s, crashLoopBackOff):
		return toRestarted(s, now)
	}
	return s
}

func shouldRestart(policy corev1.RestartPolicy, code int32) bool {
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

// missingImageStatus returns the status of a container whose image does not exist: first the pull fails, then it waits
// in back-off.
func missingImageStatus(s corev1.ContainerStatus, due bool) corev1.ContainerStatus {
	backOff := fmt.Sprintf("Back-off pulling image %q", s.Image)
	switch {
	case isWaitingFor(s, imagePullBackOff) && s.State.Waiting.Message == backOff:
		return s
	case isWaitingFor(s, errImagePull) && due:
		return toWaiting(s, imagePullBackOff, backOff)
	}
	return toWaiting(s, errImagePull, fmt.Sprintf("image %q does not exist", s.Image))
}

func toWaiting(s corev1.ContainerStatus, reason, message string) corev1.ContainerStatus {
	s.Ready, s.Started = false, new(false)
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return s
}

func toRunning(s corev1.ContainerStatus, now metav1.Time) corev1.ContainerStatus {
	s.Ready, s.Started = true, new(true)
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	return s
}

func toRestarted(s corev1.ContainerStatus, now metav1.Time) corev1.ContainerStatus {
	s.RestartCount++
	return toRunning(s, now)
}

func toTerminated(s corev1.ContainerStatus, started metav1.Time, code int32, now metav1.Time) corev1.ContainerStatus {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	s.Ready, s.Started = false, new(false)
	s.State = corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: now},
	}
	return s
}

// isWaitingFor says whether a container waits for this reason.
func isWaitingFor(s corev1.ContainerStatus, reason string) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reason
}

// hasStarted says whether a container has run at least once.
func hasStarted(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || isWaitingFor(s, crashLoopBackOff)
}

// hasSucceeded says whether a container has ended well.
func hasSucceeded(s corev1.ContainerStatus) bool {
	return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
}
