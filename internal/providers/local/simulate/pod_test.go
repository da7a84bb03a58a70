package simulate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var (
	web   = corev1.Container{Name: "web", Image: "example.org/web:1"}
	fails = corev1.Container{Name: "fails", Image: "example.org/busybox", Command: []string{"/bin/false"}}
	works = corev1.Container{Name: "works", Image: "example.org/busybox", Command: []string{"/bin/true"}}
)

// What a pod comes to rest at, as kubectl would show it.
func TestPodsComeToRest(t *testing.T) {
	type rest struct {
		Phase       corev1.PodPhase
		Init        []string
		Containers  []string
		Ready       string
		Initialized string
	}
	never := func(p *corev1.Pod) *corev1.Pod { p.Spec.RestartPolicy = corev1.RestartPolicyNever; return p }
	onFailure := func(p *corev1.Pod) *corev1.Pod { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure; return p }
	with := func(p *corev1.Pod, k, v string) *corev1.Pod { p.Annotations = map[string]string{k: v}; return p }
	before := func(p *corev1.Pod, cs ...corev1.Container) *corev1.Pod { p.Spec.InitContainers = cs; return p }
	always := corev1.ContainerRestartPolicyAlways
	sidecar := corev1.Container{Name: "beside", Image: "example.org/proxy", RestartPolicy: &always}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want rest
	}{
		"ordinary": {newPod(web), rest{"Running", nil, []string{"running"}, "True ", "True "}},
		"image missing": {newPod(web, corev1.Container{Name: "x", Image: "foo:non-existent"}), rest{
			"Pending", nil, []string{"running", "ImagePullBackOff"}, "False ContainersNotReady", "True ",
		}},
		"image declared missing": {with(newPod(web), MissingImagesAnnotation, "a, example.org/web:1"), rest{
			"Pending", nil, []string{"ImagePullBackOff"}, "False ContainersNotReady", "True ",
		}},
		"image of an init container": {before(newPod(web), corev1.Container{Name: "i", Image: "r/x:nonexistent"}), rest{
			"Pending", []string{"ImagePullBackOff"}, []string{"PodInitializing"}, "False ContainersNotReady", "False ContainersNotInitialized",
		}},
		"succeeds":           {never(newPod(works)), rest{"Succeeded", nil, []string{"ended"}, "False PodCompleted", "True PodCompleted"}},
		"fails":              {never(newPod(works, fails)), rest{"Failed", nil, []string{"ended", "failed"}, "False PodFailed", "True "}},
		"one ends, one runs": {never(newPod(works, web)), rest{"Running", nil, []string{"ended", "running"}, "False ContainersNotReady", "True "}},
		"declared code":      {with(never(newPod(web)), ExitCodeAnnotation, "3"), rest{"Failed", nil, []string{"failed"}, "False PodFailed", "True "}},
		"success needs no restart": {with(onFailure(newPod(web)), ExitCodeAnnotation, "web=0"), rest{
			"Succeeded", nil, []string{"ended"}, "False PodCompleted", "True PodCompleted",
		}},
		"of a job": {ownedByJob(onFailure(newPod(web))), rest{"Succeeded", nil, []string{"ended"}, "False PodCompleted", "True PodCompleted"}},
		"of a job, pausing": {ownedByJob(never(newPod(corev1.Container{Name: "p", Image: "registry.k8s.io/pause:3.10"}))), rest{
			"Running", nil, []string{"running"}, "True ", "True ",
		}},
		"of a job, with a sidecar": {before(ownedByJob(never(newPod(works))), sidecar), rest{
			"Succeeded", []string{"ended"}, []string{"ended"}, "False PodCompleted", "True PodCompleted",
		}},
		"sidecar": {before(newPod(web), sidecar, works), rest{"Running", []string{"running", "ended"}, []string{"running"}, "True ", "True "}},
		"init container fails": {before(never(newPod(web)), works, fails, works), rest{
			"Failed", []string{"ended", "failed", "PodInitializing"}, []string{"PodInitializing"}, "False PodFailed", "False ContainersNotInitialized",
		}},
		"code is no number": {with(newPod(web), ExitCodeAnnotation, "web=x"), rest{
			"Pending", nil, []string{"CreateContainerConfigError"}, "False ContainersNotReady", "True ",
		}},
		"code of no container": {with(newPod(web), ExitCodeAnnotation, "wep=1"), rest{
			"Pending", nil, []string{"CreateContainerConfigError"}, "False ContainersNotReady", "True ",
		}},
		"seconds are no number": {with(newPod(web), RunSecondsAnnotation, "5s"), rest{
			"Pending", nil, []string{"CreateContainerConfigError"}, "False ContainersNotReady", "True ",
		}},
		"seconds without what follows": {with(newPod(web), RunSecondsAnnotation, "5"), rest{"Running", nil, []string{"running"}, "True ", "True "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newStagePlayer(t, tc.pod)
			l.playUntilStable()
			got := rest{Phase: l.pod.Status.Phase, Ready: l.condition(corev1.PodReady), Initialized: l.condition(corev1.PodInitialized)}
			for _, s := range l.pod.Status.InitContainerStatuses {
				got.Init = append(got.Init, stateName(s))
			}
			for _, s := range l.pod.Status.ContainerStatuses {
				got.Containers = append(got.Containers, stateName(s))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if l.pod.Status.PodIP != "10.244.0.9" || l.pod.Status.HostIP != "198.18.0.7" || l.pod.Status.StartTime == nil {
				t.Errorf("addresses %q, %q, start %v", l.pod.Status.PodIP, l.pod.Status.HostIP, l.pod.Status.StartTime)
			}
		})
	}
}

// A container that ends again and again is started again after ever longer pauses.
func TestPodsRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		seen func(*stagePlayer) corev1.ContainerStatus
	}{
		"container": {newPod(fails), func(l *stagePlayer) corev1.ContainerStatus { return l.pod.Status.ContainerStatuses[0] }},
		"init container": {func() *corev1.Pod {
			p := newPod(web)
			p.Spec.InitContainers = []corev1.Container{fails}
			return p
		}(), func(l *stagePlayer) corev1.ContainerStatus { return l.pod.Status.InitContainerStatuses[0] }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newStagePlayer(t, tc.pod)
			var restarted []time.Duration
			var waits []string
			for count, steps := int32(0), 0; count < 4; steps++ {
				if !l.playStage() || steps > 20 {
					t.Fatalf("the pod rests, or is not started again: %+v", l.pod.Status)
				}
				s := tc.seen(l)
				if s.RestartCount > count {
					count = s.RestartCount
					restarted = append(restarted, l.clock.Since(l.begin))
					if s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 {
						t.Errorf("restart %d does not say how it ended before: %+v", count, s)
					}
				}
				if s.State.Waiting != nil {
					waits = append(waits, s.State.Waiting.Reason)
				}
			}
			want := []time.Duration{2 * time.Second, 12 * time.Second, 32 * time.Second, 72 * time.Second}
			if d := cmp.Diff(want, restarted); d != "" {
				t.Errorf("restarts -want +got:\n%s", d)
			}
			if d := cmp.Diff([]string{crashLoopBackOff, crashLoopBackOff, crashLoopBackOff}, waits); d != "" {
				t.Errorf("waits -want +got:\n%s", d)
			}
		})
	}
}

// The pause between two restarts has an end.
func TestPodsRestartWithinFiveMinutes(t *testing.T) {
	l := newStagePlayer(t, newPod(fails))
	l.playUntilState(t, crashLoopBackOff)
	l.pod.Status.ContainerStatuses[0].RestartCount = 40
	begin := l.clock.Now()
	l.playStage()
	if d := l.clock.Since(begin); d > 5*time.Minute || d < 4*time.Minute {
		t.Errorf("the restart was after %s", d)
	}
}

func (l *stagePlayer) playUntilState(t *testing.T, reason string) {
	t.Helper()
	for range 10 {
		if l.playStage(); len(l.pod.Status.ContainerStatuses) > 0 && stateName(l.pod.Status.ContainerStatuses[0]) == reason {
			return
		}
	}
	t.Fatalf("the container never was in %s: %+v", reason, l.pod.Status)
}

func TestContainersRunAsLongAsTheySay(t *testing.T) {
	declared := newPod(web)
	declared.Annotations = map[string]string{ExitCodeAnnotation: "0", RunSecondsAnnotation: "90"}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want time.Duration
	}{
		"at once":  {ownedByJob(newPod(web)), 0},
		"declared": {declared, 90 * time.Second},
		"sleeping": {ownedByJob(newPod(corev1.Container{Name: "s", Image: "busybox", Command: []string{"sleep"}, Args: []string{"30"}})), 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			l := newStagePlayer(t, tc.pod)
			l.playUntilStable()
			s := l.pod.Status.ContainerStatuses[0]
			if stateName(s) != "ended" || s.State.Terminated.FinishedAt.Sub(l.begin) != tc.want {
				t.Errorf("%+v; want its end after %s", s.State, tc.want)
			}
		})
	}
}

// An image that comes to exist, or a declaration that is corrected, starts the pod.
func TestPodsStartOnceTheyCan(t *testing.T) {
	l := newStagePlayer(t, newPod(corev1.Container{Name: "web", Image: "webserver:404"}))
	l.playUntilStable()
	if d := cmp.Diff([]string{`Failed: Failed to pull image "webserver:404": image "webserver:404" does not exist`}, l.events); d != "" {
		t.Errorf("events -want +got:\n%s", d)
	}
	l.pod.Spec.Containers[0].Image = "webserver:1"
	l.pod.Annotations = map[string]string{ExitCodeAnnotation: "x"}
	l.playUntilStable()
	if got := stateName(l.pod.Status.ContainerStatuses[0]); got != createContainerConfigError {
		t.Errorf("the container is in %s", got)
	}
	l.pod.Annotations = nil
	l.playUntilStable()
	if s := l.pod.Status.ContainerStatuses[0]; l.pod.Status.Phase != corev1.PodRunning || s.Image != "webserver:1" || l.condition(corev1.PodReady) != "True " {
		t.Errorf("%+v", l.pod.Status)
	}
}
