package simulate

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// stagePlayer plays the stages on one pod as kwok does, with a clock of its own.
type stagePlayer struct {
	t      *testing.T
	pod    *corev1.Pod
	clock  *testingclock.FakeClock
	begin  time.Time
	stages lifecycle.Lifecycle
	render gotpl.Renderer
	events []string
}

func newStagePlayer(t *testing.T, pod *corev1.Pod) *stagePlayer {
	t.Helper()
	documents, err := readStages()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseStages(documents...)
	if err != nil {
		t.Fatal(err)
	}
	lc, err := lifecycle.NewLifecycle(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	l := &stagePlayer{t: t, pod: pod, clock: testingclock.NewFakeClock(begin), begin: begin, stages: lc}
	funcs := templateFunctions(l.clock)
	funcs["NodeIPsWith"] = func(string) []string { return []string{"198.18.0.7"} }
	given := 0
	funcs["PodIPsWith"] = func(string, bool, string, string, string) ([]string, error) {
		if given++; given > 1 {
			t.Error("the pod was given more than one address")
		}
		return []string{"10.244.0.9"}, nil
	}
	l.render = gotpl.NewRenderer(funcs)
	pod.Name, pod.Namespace, pod.Spec.NodeName, pod.Status.Phase = "p", "default", "n", corev1.PodPending
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	return l
}

// playStage plays the stage that matches, when it is due, and says whether the pod changed.
func (l *stagePlayer) playStage() bool {
	l.t.Helper()
	event := &lifecycle.Event{Labels: l.pod.Labels, Annotations: l.pod.Annotations, Data: l.pod}
	matching, err := l.stages.ListAllPossible(l.t.Context(), event)
	if err != nil {
		l.t.Fatal(err)
	}
	if len(matching) > 1 {
		l.t.Fatalf("stages %s and %s both match; kwok would throw a dice: %+v", matching[0].Name(), matching[1].Name(), l.pod.Status)
	}
	if len(matching) == 0 {
		return false
	}
	delay, _, err := matching[0].Delay(l.t.Context(), event, l.clock.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	l.clock.Step(max(0, delay))
	before := l.pod.DeepCopy()
	_, err = matching[0].DoSteps(0, nil, l.pod, l.render, nil, nil, l.patch, l.apply)
	if err != nil {
		l.t.Fatal(err)
	}
	return !cmp.Equal(before, l.pod)
}

func (l *stagePlayer) patch(p *lifecycle.Patch) error {
	if p.Subresource != "status" {
		l.t.Errorf("stage patches subresource %q", p.Subresource)
	}
	before, err := json.Marshal(l.pod)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, p.Data, corev1.Pod{})
	if err != nil {
		return err
	}
	l.pod = &corev1.Pod{}
	return json.Unmarshal(after, l.pod)
}

func (l *stagePlayer) apply(a *lifecycle.Apply) error {
	e := &corev1.Event{}
	if err := json.Unmarshal(a.Data, e); err != nil {
		return err
	}
	l.events = append(l.events, e.Reason+": "+e.Message)
	return nil
}

// playUntilStable plays stages until nothing changes any more.
func (l *stagePlayer) playUntilStable() {
	l.t.Helper()
	for range 10 {
		if !l.playStage() {
			return
		}
	}
	l.t.Fatalf("the pod still changes: %+v", l.pod.Status)
}

// stateName is a container's state in a few words.
func stateName(s corev1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "running"
	case s.State.Waiting != nil:
		return s.State.Waiting.Reason
	case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		return "ended"
	case s.State.Terminated != nil:
		return "failed"
	}
	return "unknown"
}

func (l *stagePlayer) condition(of corev1.PodConditionType) string {
	if c := findCondition(l.pod, of); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

func newPod(cs ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: cs}}
}

func ownedByJob(p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j"}}
	return p
}
