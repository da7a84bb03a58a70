package plane

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// unreadable are fields of another type: Go cannot decode the object. Each has the sentence of its Event.
var unreadable = []struct {
	kind string
	poison
	problem string
}{
	{"WorkloadCluster", poison{"a number for text", []string{"spec", "stack", "name"}, int64(5)}, "spec.stack.name holds a number where text belongs"},
	{"WorkloadCluster", poison{"text for an object", []string{"spec", "stack"}, "scs"}, "spec.stack holds text where an object belongs"},
	{"ClusterStack", poison{"a number for text", []string{"spec", "kubernetesVersion"}, 1.37}, "spec.kubernetesVersion holds a number where text belongs"},
	{"ClusterStack", poison{"text for an object", []string{"spec"}, "scs"}, "spec holds text where an object belongs"},
	{"Cluster", poison{"a number for text", []string{"spec", "controlPlaneEndpoint", "host"}, int64(5)}, "spec.controlPlaneEndpoint.host holds a number where text belongs"},
	{"Cluster", poison{"text for an object", []string{"spec", "topology"}, "class"}, "spec.topology holds text where an object belongs"},
}

// maxDelay is how late another object of the kind may be reconciled: the informer lists again within seconds.
const maxDelay = 20 * time.Second

// An object in the store that Go cannot decode harms itself only, also when the plane starts with it. It says what is
// wrong with it, is not touched, and goes on once it is repaired.
func TestUnreadableObjects(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped = true
	p.Start(t)
	p.AwaitReady(t)
	for _, x := range unreadable {
		t.Run(x.kind+" with "+x.name, func(t *testing.T) {
			c, store, ns := p.Client(t), openStore(t, p), p.CreateNamespace(t)
			good := newOf(x.kind, ns, "bad")
			testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), good) }) // the catalogue is filled after the start
			awaitSeen(t, c, good)
			x.put(t, store, good)
			checkOthers(t, p, c, x.kind, ns)
			awaitEvent(t, c, good, x.problem)
			repair(t, c, good)
		})
	}
	t.Run("restart", func(t *testing.T) { checkRestart(t, p) })
	t.Run("deletion", func(t *testing.T) { checkDeletion(t, p) })
}

// checkRestart starts the plane with one unreadable object of each sort in its store.
func checkRestart(t *testing.T, p *testenv.Plane) {
	c, ns := p.Client(t), p.CreateNamespace(t)
	store := openStore(t, p)
	bad := make([]*unstructured.Unstructured, len(unreadable))
	for i, x := range unreadable {
		bad[i] = newOf(x.kind, ns, fmt.Sprintf("bad-%d", i))
		if err := c.Create(t.Context(), bad[i]); err != nil {
			t.Fatal(err)
		}
		awaitSeen(t, c, bad[i])
		x.put(t, store, bad[i])
	}
	p.Signal(t, syscall.SIGTERM, wait)
	p.Start(t)
	p.AwaitReady(t)
	c = p.Client(t)
	for i, x := range unreadable {
		if i%2 == 0 {
			checkOthers(t, p, c, x.kind, ns)
		}
		awaitEvent(t, c, bad[i], x.problem)
	}
	testenv.Eventually(t, wait, func() error {
		if text := p.GetPath(t, "/metrics/controllers"); !strings.Contains(text, `polder_unreadable_objects{kind="WorkloadCluster"} 2`) {
			return fmt.Errorf("no metric of unreadable objects")
		}
		return nil
	})
	for i := range unreadable {
		repair(t, c, bad[i])
	}
}

// checkDeletion deletes unreadable objects: one without finalizers goes, one with a finalizer waits for its repair.
func checkDeletion(t *testing.T, p *testenv.Plane) {
	c, ns, store := p.Client(t), p.CreateNamespace(t), openStore(t, p)
	for _, x := range unreadable {
		good := newOf(x.kind, ns, "bad")
		if err := c.Create(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		awaitSeen(t, c, good)
		x.put(t, store, good)
		awaitEvent(t, c, good, x.problem)
		if err := c.Delete(t.Context(), newOf(x.kind, ns, "bad")); err != nil {
			t.Errorf("%s with %s: %v", x.kind, x.name, err)
			x.remove(t, store, good)
			continue
		}
		now := newOf(x.kind, ns, "bad")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(now), now); err == nil {
			if len(now.GetFinalizers()) == 0 || now.GetDeletionTimestamp() == nil {
				t.Errorf("%s is there, with finalizers %v", x.kind, now.GetFinalizers())
			}
			// Nothing is done for the deletion of a paused Cluster either.
			unstructured.RemoveNestedField(good.Object, "spec", "paused")
			patchSpec(t, c, good)
		}
		testenv.Eventually(t, wait, func() error {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(now), now)
			if err == nil {
				return fmt.Errorf("%s with %s is still there", x.kind, x.name)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// checkOthers creates another object of the kind and measures how long it takes until a controller has seen it.
func checkOthers(t *testing.T, p *testenv.Plane, c client.Client, kind, ns string) {
	t.Helper()
	o := newOf(kind, ns, "")
	o.SetGenerateName("good-")
	begin := time.Now()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("another one: %v", err)
	}
	awaitSeen(t, c, o)
	took := time.Since(begin)
	if took > maxDelay {
		t.Errorf("another %s was reconciled after %s", kind, took)
	}
	t.Logf("another %s was reconciled after %s", kind, took)
	if code := readyz(t, p); code != 200 {
		t.Errorf("/readyz answers %d", code)
	}
}

// awaitEvent waits for the Event that says what is wrong, and checks that the object is left alone.
func awaitEvent(t *testing.T, c client.Client, o *unstructured.Unstructured, problem string) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		var l corev1.EventList
		if err := c.List(t.Context(), &l, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == "UnreadableObject" && e.InvolvedObject.UID == o.GetUID() && strings.HasPrefix(e.Message, problem) && strings.Contains(e.Message, "kubectl") {
				return nil
			}
		}
		return fmt.Errorf("no Event says of %s %s that %s", o.GetKind(), o.GetName(), problem)
	})
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(o.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil || now.GetDeletionTimestamp() != nil || now.GetUID() != o.GetUID() {
		t.Errorf("%s was not left alone: %v, %v", o.GetName(), now.GetDeletionTimestamp(), err)
	}
}

// patchSpec gives the object the spec that it had, as kubectl patch does.
func patchSpec(t *testing.T, c client.Client, good *unstructured.Unstructured) {
	t.Helper()
	spec, _, _ := unstructured.NestedMap(good.Object, "spec")
	// A merge patch only adds to objects, so what is not there is taken away.
	for _, field := range []string{"topology", "paused"} {
		if _, ok := spec[field]; !ok && good.GetKind() == "Cluster" {
			spec[field] = nil
		}
	}
	b, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), good.DeepCopy(), client.RawPatch(types.MergePatchType, b)); err != nil {
		t.Fatalf("%s cannot be repaired: %v", good.GetKind(), err)
	}
}

// repair repairs the object and waits until a controller has seen that.
func repair(t *testing.T, c client.Client, good *unstructured.Unstructured) {
	t.Helper()
	begin := time.Now()
	if good.GetKind() == "ClusterStack" {
		replace(t, c, good)
		return
	}
	patchSpec(t, c, good)
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(good.GroupVersionKind())
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(good), now); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, x := range conditions {
			if m, ok := x.(map[string]any); ok && m["observedGeneration"] == now.GetGeneration() && now.GetGeneration() > good.GetGeneration() {
				return nil
			}
		}
		return fmt.Errorf("no controller has seen generation %d of %s", now.GetGeneration(), now.GetName())
	})
	t.Logf("%s was reconciled %s after its repair", good.GetKind(), time.Since(begin))
}

// replace deletes the object and creates it anew: rules that compare a ClusterStack with what it was refuse its repair.
func replace(t *testing.T, c client.Client, good *unstructured.Unstructured) {
	t.Helper()
	if err := c.Delete(t.Context(), newOf(good.GetKind(), good.GetNamespace(), good.GetName())); err != nil {
		t.Fatal(err)
	}
	again := newOf(good.GetKind(), good.GetNamespace(), good.GetName())
	testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), again) })
	awaitSeen(t, c, again)
}
