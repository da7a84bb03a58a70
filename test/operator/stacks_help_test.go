package operator

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

func (w *walk) get(t *testing.T, name string, o client.Object) error {
	return w.mgmt.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, o)
}

// says waits for a condition of a stack or a release, with words in its message.
func (w *walk) says(t *testing.T, o client.Object, name, condition string, status metav1.ConditionStatus, reason string, words ...string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	testenv.Eventually(t, soon, func() error {
		if err := w.get(t, name, o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(conditionsOf(o), condition)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%T %s: %s is not %s with reason %s: %+v", o, name, condition, status, reason, conditionsOf(o))
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("%T %s: %s does not say %q: %s", o, name, condition, word, c.Message)
			}
		}
		found = *c
		return nil
	})
	return found
}

func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *csv1.ClusterStack:
		return o.Status.Conditions
	case *csv1.ClusterStackRelease:
		return o.Status.Conditions
	case *csv1.ClusterAddon:
		return o.Status.Conditions
	}
	return nil
}

// advises waits until the status of an object says who must act, and what to do next in these words.
func (w *walk) advises(t *testing.T, o client.Object, name string, actor csv1.Actor, words ...string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		if err := w.get(t, name, o); err != nil {
			return err
		}
		is, next := adviceOf(o)
		if is != actor || (len(words) == 0) != (next == "") {
			return fmt.Errorf("%T %s: %q must act, not %q: %q; %+v", o, name, is, actor, next, conditionsOf(o))
		}
		for _, word := range words {
			if !strings.Contains(next, word) {
				return fmt.Errorf("%T %s: the next step does not say %q: %s", o, name, word, next)
			}
		}
		return nil
	})
}

func adviceOf(o client.Object) (csv1.Actor, string) {
	switch o := o.(type) {
	case *csv1.ClusterStack:
		return o.Status.Actor, o.Status.NextStep
	case *csv1.ClusterStackRelease:
		return o.Status.Actor, o.Status.NextStep
	case *csv1.ClusterAddon:
		return o.Status.Actor, o.Status.NextStep
	}
	return "", ""
}

// sourceOf gives a stack another source.
func (w *walk) sourceOf(t *testing.T, name string, s *csv1.Source) {
	t.Helper()
	o := &csv1.ClusterStack{}
	if err := w.get(t, name, o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	o.Spec.Source = s
	if err := w.mgmt.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// secret writes a Secret, over one that may be there.
func (w *walk) secret(t *testing.T, name string, data map[string]string) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, StringData: data}
	if err := client.IgnoreNotFound(w.mgmt.Delete(t.Context(), s.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if err := w.mgmt.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// eventOf waits for an event about an object.
func (w *walk) eventOf(t *testing.T, kind, name, eventType, reason, words string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		var l corev1.EventList
		if err := w.mgmt.List(t.Context(), &l, client.InNamespace(w.ns)); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Type == eventType && e.Reason == reason && strings.Contains(e.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("no event %s %s of %s %s says %q", eventType, reason, kind, name, words)
	})
}

// paused is a cluster of a class that nobody provisions.
func paused(namespace, name, class, version string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.Paused = ptr.To(true)
	c.Spec.Topology.ClassRef.Name = class
	c.Spec.Topology.Version = version
	c.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1)
	return c
}

// isGone waits until an object is not there.
func (w *walk) isGone(t *testing.T, name string, o client.Object) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		if err := w.get(t, name, o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is still there: %w", o, name, err)
		}
		return nil
	})
}

// withClass adds a file to the chart of the class.
func withClass(text string) func(archive.Tree) {
	return func(files archive.Tree) { files["cluster-class/templates/more.yaml"] = []byte(text) }
}

// kubernetesOf is the exact version that our stack has for a minor.
func kubernetesOf(t *testing.T, minor string) string {
	t.Helper()
	return stackenv.BuildShipped(t, "local/scs", minor, "v1").Metadata.Versions.Kubernetes
}
