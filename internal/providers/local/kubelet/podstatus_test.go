package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func TestNewProbe(t *testing.T) {
	get := func(scheme corev1.URIScheme, path string, port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Scheme: scheme, Host: "127.0.0.1", Path: path, Port: port}}}
	}
	named, number := intstr.FromString("probe-port"), intstr.FromInt32(2381)
	ports := []corev1.ContainerPort{{ContainerPort: 1}, {Name: "other", ContainerPort: 2}, {Name: "probe-port", ContainerPort: 6443}}
	for name, c := range map[string]struct {
		container corev1.Container
		want      string
	}{
		"as kubeadm writes an API server": {
			corev1.Container{
				Ports: ports, LivenessProbe: get("HTTPS", "/livez", named), ReadinessProbe: get("HTTPS", "/readyz", named), StartupProbe: get("HTTPS", "/livez", named),
			},
			"https://127.1.0.11:6443/readyz",
		},
		"as kubeadm writes a controller manager": {
			corev1.Container{Ports: ports, LivenessProbe: get("HTTPS", "/healthz", named), StartupProbe: get("HTTPS", "/startup", named)},
			"https://127.1.0.11:6443/startup",
		},
		"by number, as in older versions":         {corev1.Container{LivenessProbe: get("HTTP", "/health", number)}, "http://127.1.0.11:2381/health"},
		"by number, with a port that has no name": {corev1.Container{Ports: ports, LivenessProbe: get("HTTP", "/health", number)}, "http://127.1.0.11:2381/health"},
		"without scheme and slash":                {corev1.Container{LivenessProbe: get("", "health", number)}, "http://127.1.0.11:2381/health"},
		"with a query": {corev1.Container{LivenessProbe: get("HTTP", "/health?exclude=NOSPACE", number)},
			"http://127.1.0.11:2381/health?exclude=NOSPACE"},
		"none": {corev1.Container{}, ""},
		"one of another kind": {corev1.Container{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}},
			""},
		"the first of another kind": {
			corev1.Container{ReadinessProbe: &corev1.Probe{}, LivenessProbe: get("HTTP", "/", number)}, "http://127.1.0.11:2381/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c.container}}}, mustAddr("127.1.0.11"))
			if p.url != c.want {
				t.Errorf("%q, want %q", p.url, c.want)
			}
		})
	}
}

// formatStatus prints phase, container state, readiness and restarts of a pod.
func formatStatus(s corev1.PodStatus) string {
	c := s.ContainerStatuses[0]
	what := string(s.Phase)
	switch {
	case c.State.Running != nil:
		what += " running"
	case c.State.Waiting != nil:
		what += " " + c.State.Waiting.Reason
	}
	if l := c.LastTerminationState.Terminated; l != nil {
		what += fmt.Sprintf(" after %d", l.ExitCode)
	}
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			what += " ready:" + string(c.Status)
		}
	}
	return fmt.Sprintf("%s restarts:%d", what, c.RestartCount)
}

func TestPodStatusTransitions(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "a", apiServerManifest(t))
	syncPods(t, k)
	processtest.Eventually(t, "it is ready", k.IsServing)
	p := k.pods.list()[0]
	have := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	fresh := &staticPod{manifest: p.manifest, ctx: t.Context()}
	for _, step := range []struct {
		of   *staticPod
		want string
	}{{fresh, "Pending ContainerCreating ready:False restarts:0"}, {p, "Running running ready:True restarts:0"}} {
		have.Status = podStatus(have, step.of, "127.1.0.11", time.Now())
		if got := formatStatus(have.Status); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
	}
	c := have.Status.ContainerStatuses[0]
	if c.Name != apiServer || c.Image != "example/kube-apiserver:v1" || !*c.Started || have.Status.PodIP != "127.1.0.11" || have.Status.HostIP != "127.1.0.11" ||
		have.Status.StartTime == nil || have.Status.QOSClass != corev1.PodQOSBurstable || have.Status.ObservedGeneration != 2 {
		t.Errorf("%+v", have.Status)
	}
	writeManifest(t, k, "a", manifestOf(apiServer, 0, "--exit=7"))
	syncPods(t, k)
	p = k.pods.list()[0]
	processtest.Eventually(t, "it has failed", func() bool { return p.state().LastExit != nil })
	before := have.Status.DeepCopy()
	have.Status = podStatus(have, p, "127.1.0.11", time.Now())
	if got, want := formatStatus(have.Status), "Running CrashLoopBackOff after 7 ready:False restarts:0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if m := have.Status.ContainerStatuses[0].State.Waiting.Message; !strings.HasPrefix(m, "exited with code 7") || !have.Status.StartTime.Equal(before.StartTime) {
		t.Errorf("message %q, start %s, before %s", m, have.Status.StartTime, before.StartTime)
	}
}

func TestPodStatusKeepsWhatDidNotChange(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	p := &staticPod{ctx: t.Context(), manifest: manifest{pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd"}}}}}}
	have := &corev1.Pod{Status: podStatus(&corev1.Pod{}, p, "127.1.0.11", time.Now())}
	for i := range have.Status.Conditions {
		have.Status.Conditions[i].LastTransitionTime = long
	}
	have.Status.StartTime = &long
	if now := podStatus(have, p, "127.1.0.11", time.Now()); !sameStatus(have.Status, now) {
		t.Error(cmp.Diff(have.Status, now))
	}
	p.ready = true
	for _, c := range podStatus(have, p, "127.1.0.11", time.Now()).Conditions {
		changes := c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		if c.LastTransitionTime.Equal(&long) == changes || c.Status != corev1.ConditionTrue {
			t.Errorf("%+v", c)
		}
	}
}

func TestMirrorPod(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	whole, _, err := k.pods.readManifests()
	if err != nil {
		t.Fatal(err)
	}
	m := &mirror{kubelet: k, node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: types.UID("n")}}}
	got := m.newMirrorPod("etcd-node-1", "hash", &staticPod{manifest: whole["etcd"]})
	o := got.OwnerReferences[0]
	if got.Name != "etcd-node-1" || got.Namespace != "kube-system" || got.Spec.NodeName != "node-1" || got.Labels["tier"] != "control-plane" ||
		got.Annotations[corev1.MirrorPodAnnotationKey] != "hash" || got.Annotations["kubernetes.io/config.source"] != "file" || o.UID != "n" || !*o.Controller {
		t.Errorf("%+v", got)
	}
	if whole["etcd"].pod.Spec.NodeName != "" {
		t.Error("the manifest was changed")
	}
	if manifestHash([]byte("a")) == manifestHash([]byte("b")) {
		t.Error("manifests are not told apart by their digests")
	}
}

// A process may end between its answer and our noticing it.
func TestAnAnswerOfAProcessThatEndedMeanwhile(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 1)) // nobody answers there
	syncPods(t, k)
	waitUntilRunning(t, k, "etcd")
	p := k.pods.list()[0]
	p.stop()
	p.markReady()
	if p.isReady() {
		t.Error("ready")
	}
}
