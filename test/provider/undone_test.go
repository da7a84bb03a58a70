package provider

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// Somebody deletes the Cluster below a WorkloadCluster: the status says so, with who must act. No other takes its place
// until somebody asks for it.
func TestClusterDeletedByHand(t *testing.T) {
	t.Parallel()
	const hold = "test.polder.dev/hold"
	g := newGround(t)
	o := g.cluster("undone", 1)
	g.await("undone", ready)
	c := &clusterv1.Cluster{}
	edit := func(f func(client.Object, string) bool) error {
		if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); err != nil {
			return err
		}
		before := c.DeepCopy()
		f(c, hold)
		return g.mgmt.Patch(t.Context(), c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	testenv.Eventually(t, soon, func() error { return edit(controllerutil.AddFinalizer) })
	first := c.UID
	if err := g.mgmt.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	stalled := g.await("undone", func(o *v1alpha1.WorkloadCluster) error {
		if o.Status.Phase != v1alpha1.PhaseStalled || !strings.HasPrefix(o.Status.Message, "somebody is deleting the Cluster of this WorkloadCluster") {
			return fmt.Errorf("%s: %s", o.Status.Phase, o.Status.Message)
		}
		return nil
	})
	if stalled.Status.Actor != v1alpha1.PlatformOperator || !strings.Contains(stalled.Status.NextStep, "delete the WorkloadCluster") {
		t.Errorf("%s must %s", stalled.Status.Actor, stalled.Status.NextStep)
	}
	testenv.Eventually(t, soon, func() error {
		err := edit(controllerutil.RemoveFinalizer)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	lost := g.await("undone", func(o *v1alpha1.WorkloadCluster) error {
		if o.Status.Phase != v1alpha1.PhaseStalled || !strings.HasPrefix(o.Status.Message, "the cluster is lost") {
			return fmt.Errorf("%s: %s", o.Status.Phase, o.Status.Message)
		}
		return nil
	})
	if !strings.Contains(lost.Status.Message, string(first)) || !strings.Contains(lost.Status.Message, "first ready") ||
		!strings.Contains(lost.Status.NextStep, "polder recreate undone -n "+o.Namespace) || lost.Status.Actor != v1alpha1.PlatformOperator {
		t.Errorf("%s; %s must %s", lost.Status.Message, lost.Status.Actor, lost.Status.NextStep)
	}
	if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); !apierrors.IsNotFound(err) {
		t.Errorf("there is another one, UID %s, %v", c.UID, err)
	}
	g.change("undone", func(o *v1alpha1.WorkloadCluster) {
		o.Annotations = map[string]string{v1alpha1.RecreateAnnotation: o.Status.ClusterUID}
	})
	testenv.Eventually(t, soon, func() error {
		if err := g.mgmt.Get(t.Context(), client.ObjectKeyFromObject(o), c); err != nil {
			return err
		}
		if c.UID == first {
			return fmt.Errorf("it is still the Cluster that was deleted")
		}
		return nil
	})
	if now := g.await("undone", ready); now.Status.ClusterUID != string(c.UID) || now.Annotations[v1alpha1.RecreateAnnotation] != "" {
		t.Errorf("it has Cluster %s, want %s; annotations %v", now.Status.ClusterUID, c.UID, now.Annotations)
	}
	g.countAll(map[string]int32{"undone": 1})
	g.remove(o)
	g.awaitGone(o)
	g.awaitNothing()
}

// No part of a protected cluster is deleted by people, whatever rights they have. Controllers go on replacing machines.
func TestProtectedCluster(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	o := g.cluster("protected", 2)
	g.change("protected", func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) })
	g.await("protected", ready)
	tried := 0
	for _, k := range kinds() {
		names, err := g.names(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(k)
			if err := g.mgmt.Get(t.Context(), client.ObjectKey{Namespace: g.ns, Name: name}, u); err != nil {
				t.Fatal(err)
			}
			if _, ok := u.GetLabels()[clusterv1.ClusterNameLabel]; !ok {
				continue // the class's
			}
			tried++
			err := g.mgmt.Delete(t.Context(), u)
			if want := "is a part of cluster protected, which is protected from deletion; set spec.deletionProtection"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("deleting %s %s: %v", k.Kind, name, err)
			}
		}
	}
	if tried < 8 {
		t.Errorf("only %d parts were found", tried)
	}
	if err := g.mgmt.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.ns}}); err == nil || !strings.Contains(err.Error(), "protected from deletion") {
		t.Errorf("deleting the namespace: %v", err)
	}
	g.change("protected", func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To(int32(1)) })
	g.await("protected", ready)
	g.countAll(map[string]int32{"protected": 1})
	g.change("protected", func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(false) })
	g.remove(o)
	g.awaitGone(o)
	g.awaitNothing()
}
