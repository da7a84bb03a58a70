package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
	"github.com/polder-kaas/polder/test/testenv"
)

// hosts are those of one test; each namespace has one.
type hosts struct {
	launch.Launcher
	plane *testenv.Plane
	uids  sync.Map // of LocalClusters, by namespace
}

func (h *hosts) dir(namespace string) hostapi.Dir {
	uid, _ := h.uids.Load(namespace)
	return h.Dir(fmt.Sprint(uid))
}

// makeCluster makes a Cluster that has nothing but infrastructure.
func (h *hosts) makeCluster(ctx context.Context, c client.Client, namespace string) error {
	o := &infrav1.LocalCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec:       infrav1.LocalClusterSpec{FailureDomains: []infrav1.FailureDomain{{Name: "zone-a"}, {Name: "zone-b"}}},
	}
	if err := c.Create(ctx, o); err != nil {
		return err
	}
	h.uids.Store(namespace, o.UID)
	return c.Create(ctx, &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: reference("LocalCluster", clusterName)},
	})
}

func reference(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
}

// gone returns an error that names what is left of a namespace's cluster.
func (h *hosts) gone(ctx context.Context, c client.Client, namespace string) error {
	for _, l := range []client.ObjectList{&clusterv1.ClusterList{}, &clusterv1.MachineList{}} {
		if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return err
		}
		if n := meta.LenList(l); n > 0 {
			return fmt.Errorf("%d in a %T", n, l)
		}
	}
	dir := string(h.dir(namespace))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the host's directory %s: %w", dir, err)
	}
	all, err := h.plane.Processes()
	for _, p := range all {
		if strings.Contains(p, dir) {
			return fmt.Errorf("process %s", p)
		}
	}
	return err
}

// withoutAddresses drops addresses, which are chosen anew for each cluster.
func withoutAddresses(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "spec", "controlPlaneEndpoint", "host")
	if o.GetKind() == "LocalCluster" {
		unstructured.RemoveNestedField(o.Object, "status", "addresses")
		return
	}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "addresses") // what is none is not there
	for _, a := range all {
		if m, ok := a.(map[string]any); ok && m["type"] == string(clusterv1.MachineInternalIP) {
			m["address"] = "ADDRESS"
		}
	}
	if all != nil {
		_ = unstructured.SetNestedSlice(o.Object, all, "status", "addresses") // there is one
	}
}

// patched changes an object of the kind that f is for.
func patched[T any, O interface {
	*T
	client.Object
}](name string, f func(O)) reconciletest.Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		o := O(new(T))
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		before, _ := o.DeepCopyObject().(client.Object) // it is what it is a copy of
		f(o)
		return c.Patch(ctx, o, client.MergeFrom(before))
	}
}

// message checks that a condition's message contains a text.
func message[T interface {
	client.Object
	conditions.Getter
}](o T, name, condition, text string) reconciletest.Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		o, _ := o.DeepCopyObject().(T) // it is what it is a copy of
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		if have := conditions.Get(o, condition); have == nil || !strings.Contains(have.Message, text) {
			return fmt.Errorf("condition %s is %v, want %q in its message", condition, have, text)
		}
		return nil
	}
}
