package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of containers that wait, as a kubelet gives them.
const (
	podInitializing  = "PodInitializing"
	errImagePull     = "ErrImagePull"
	imagePullBackOff = "ImagePullBackOff"
	crashLoopBackOff = "CrashLoopBackOff"
	configError      = "CreateContainerConfigError"
)

// next is the state after a container's, once that is due; the same, if nothing follows.
func next(s corev1.ContainerStatus, o outcome, policy corev1.RestartPolicy, now metav1.Time) corev1.ContainerStatus {
	switch t := s.State.Terminated; {
	case s.State.Running != nil && o.ends:
		return terminated(s, s.State.Running.StartedAt, o.code, now)
	case t != nil && restarts(policy, t.ExitCode) && s.RestartCount == 0:
		s.LastTerminationState = s.State
		return restarted(s, now) // a kubelet does not wait before the first restart
	case t != nil && restarts(policy, t.ExitCode):
		s.LastTerminationState = s.State
		return waiting(s, crashLoopBackOff, "back-off restarting failed container="+s.Name)
	case waitsFor(s, crashLoopBackOff):
		return restarted(s, now)
	}
	return s
}

func restarts(policy corev1.RestartPolicy, code int32) bool {
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

// pull is the state of a container whose image does not exist: first it is looked for, then waited for.
func pull(s corev1.ContainerStatus, due bool) corev1.ContainerStatus {
	backOff := fmt.Sprintf("Back-off pulling image %q", s.Image)
	switch {
	case waitsFor(s, imagePullBackOff) && s.State.Waiting.Message == backOff:
		return s
	case waitsFor(s, errImagePull) && due:
		return waiting(s, imagePullBackOff, backOff)
	}
	return waiting(s, errImagePull, fmt.Sprintf("image %q does not exist", s.Image))
}

func waiting(s corev1.ContainerStatus, reason, message string) corev1.ContainerStatus {
	s.Ready, s.Started = false, new(false)
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return s
}

func running(s corev1.ContainerStatus, now metav1.Time) corev1.ContainerStatus {
	s.Ready, s.Started = true, new(true)
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	return s
}

func restarted(s corev1.ContainerStatus, now metav1.Time) corev1.ContainerStatus {
	s.RestartCount++
	return running(s, now)
}

func terminated(s corev1.ContainerStatus, started metav1.Time, code int32, now metav1.Time) corev1.ContainerStatus {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	s.Ready, s.Started = false, new(false)
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: now}}
	return s
}

// waitsFor says whether a container waits for this reason.
func waitsFor(s corev1.ContainerStatus, reason string) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reason
}

// begun says whether a container has run at least once.
func begun(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || waitsFor(s, crashLoopBackOff)
}

// succeeded says whether a container has ended well.
func succeeded(s corev1.ContainerStatus) bool {
	return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
}
