package local

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/test/testenv"
)

// Pods declare by annotation how their containers end, and the cluster's own controllers act on it.
func TestOutcomesThatPodsDeclare(t *testing.T) {
	c := create(t, testenv.StartPlane(t), "outcome", newVersion, options{})
	c.awaitAvailable(t, createTimeout)
	k := c.workload(t)
	t.Run("an image that does not exist", func(t *testing.T) { missingImage(t, k) })
	t.Run("a container that fails and is started again", func(t *testing.T) { crashes(t, k) })
	t.Run("a job that fails", func(t *testing.T) { jobFails(t, k) })
	t.Run("a declaration that makes no sense", func(t *testing.T) { mistake(t, k) })
}

// declare creates a pod with one annotation, and waits until it is as wanted.
func declare(t *testing.T, k kubernetes.Interface, name, annotation, value string, as func(*corev1.Pod) error) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{annotation: value}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}},
	}
	if _, err := k.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		have, err := k.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(have.Status.ContainerStatuses) != 1 {
			return fmt.Errorf("the pod has no status yet: %+v", have.Status)
		}
		return as(have)
	})
}

func missingImage(t *testing.T, k kubernetes.Interface) {
	declare(t, k, "missing", "local.polder.dev/missing-images", "example.org/web:1", func(p *corev1.Pod) error {
		if w := p.Status.ContainerStatuses[0].State.Waiting; p.Status.Phase != corev1.PodPending || w == nil || w.Reason != "ImagePullBackOff" {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
	testenv.Eventually(t, soon, func() error {
		l, err := k.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=missing,reason=Failed"})
		if err != nil {
			return err
		}
		if len(l.Items) != 1 || !strings.HasPrefix(l.Items[0].Message, `Failed to pull image "example.org/web:1"`) {
			return fmt.Errorf("events: %+v", l.Items)
		}
		return nil
	})
}

func crashes(t *testing.T, k kubernetes.Interface) {
	declare(t, k, "crashes", "local.polder.dev/exit-code", "3", func(p *corev1.Pod) error {
		s := p.Status.ContainerStatuses[0]
		if s.RestartCount < 1 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 3 || p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}

func jobFails(t *testing.T, k kubernetes.Interface) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "fails", Namespace: "default"}, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"local.polder.dev/exit-code": "work=1,log=0"}},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{
				{Name: "work", Image: "example.org/work:1"}, {Name: "log", Image: "example.org/log:1"},
			}},
		},
	}}
	if _, err := k.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		have, err := k.BatchV1().Jobs("default").Get(t.Context(), "fails", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range have.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the job has not failed: %+v", have.Status)
	})
}

func mistake(t *testing.T, k kubernetes.Interface) {
	declare(t, k, "mistake", "local.polder.dev/exit-code", "oops", func(p *corev1.Pod) error {
		w := p.Status.ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "CreateContainerConfigError" || !strings.Contains(w.Message, `"oops" is no exit code`) {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}
