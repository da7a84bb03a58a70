package plane

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// Objects that no validation has seen are in the store, as an older definition or a restore could leave them. Each is
// itself in error at most: others of its kind are served and reconciled as before, and the plane stays ready.
// TestUnreadableObjects has those with fields of another type.
func TestPoisonedObjects(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped = true
	p.Start(t)
	p.AwaitReady(t)
	c := p.Client(t)
	store := openStore(t, p)
	for kind, poisons := range map[string][]poison{
		"WorkloadCluster": {
			{"replicas below zero", []string{"spec", "controlPlane", "replicas"}, int64(-5)},
			{"a name that is none", []string{"spec", "stack", "name"}, "../../x\n"},
			{"an amount that nobody can compare", []string{"spec", "workers"}, []any{
				map[string]any{"name": "a", "machine": map[string]any{"cpu": int64(1), "memory": "1e2000000000"}},
			}},
			{"no spec", []string{"spec"}, nil},
		},
		"ClusterStack": {
			{"a version that is none", []string{"spec", "kubernetesVersion"}, "newest"},
			{"no spec", []string{"spec"}, nil},
		},
	} {
		for _, x := range poisons {
			t.Run(kind+" with "+x.name, func(t *testing.T) {
				ns := p.CreateNamespace(t)
				o := newOf(kind, ns, "bad")
				testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), o) }) // the catalogue is filled after the start
				awaitSeen(t, c, o)
				x.put(t, store, o)
				other := newOf(kind, ns, "good")
				if err := c.Create(t.Context(), other); err != nil {
					t.Fatalf("another one: %v", err)
				}
				awaitSeen(t, c, other)
				if code := readyz(t, p); code != 200 {
					t.Errorf("/readyz answers %d", code)
				}
				x.remove(t, store, o)
			})
		}
	}
	if s := p.Status(t); s.PID != p.PID() {
		t.Error("the plane was started anew meanwhile")
	}
}

// poison is a value that validation would refuse.
type poison struct {
	name  string
	field []string
	value any // nil: the field is gone
}

func openStore(t *testing.T, p *testenv.Plane) *clientv3.Client {
	t.Helper()
	s, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(p.Data, "etcd.sock")}, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func keyOf(o *unstructured.Unstructured) string {
	resource := strings.ToLower(o.GetKind()) + "s"
	return fmt.Sprintf("/registry/%s/%s/%s/%s", o.GroupVersionKind().Group, resource, o.GetNamespace(), o.GetName())
}

// put changes the object in the store, around the API server.
func (x poison) put(t *testing.T, store *clientv3.Client, o *unstructured.Unstructured) {
	t.Helper()
	got, err := store.Get(t.Context(), keyOf(o))
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%s is not in the store: %v, %v", keyOf(o), got, err)
	}
	stored := map[string]any{}
	if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil {
		t.Fatal(err)
	}
	if x.value == nil {
		unstructured.RemoveNestedField(stored, x.field...)
	} else if err := unstructured.SetNestedField(stored, x.value, x.field...); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), keyOf(o), string(b)); err != nil {
		t.Fatal(err)
	}
}

// remove takes the object out of the store, so that the next one is alone.
func (x poison) remove(t *testing.T, store *clientv3.Client, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := store.Delete(t.Context(), keyOf(o)); err != nil {
		t.Fatal(err)
	}
}

// newOf is a valid object of the kind, of which nothing is made.
func newOf(kind, ns, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	switch kind {
	case "WorkloadCluster":
		o.Object = map[string]any{"spec": map[string]any{"provider": "local", "stack": map[string]any{"name": "scs", "kubernetesVersion": "1.37"}, "paused": true}}
		o.SetAPIVersion("polder.dev/v1alpha1")
	case "Cluster":
		o.Object = map[string]any{"spec": map[string]any{
			"paused": true, "controlPlaneEndpoint": map[string]any{"host": "example.com", "port": int64(6443)}, "clusterNetwork": map[string]any{"serviceDomain": "a.b"},
			"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "LocalCluster", "name": "none"},
		}}
		o.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	default:
		o.Object = map[string]any{"spec": map[string]any{"provider": "local", "name": "scs", "kubernetesVersion": "1.37", "versions": []any{"v1"}}}
		o.SetAPIVersion("clusterstack.x-k8s.io/v1alpha1")
	}
	o.SetKind(kind)
	o.SetNamespace(ns)
	o.SetName(name)
	return o
}

// awaitSeen waits until a controller has written a status for the object as it is.
func awaitSeen(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		if len(conditions) == 0 {
			return fmt.Errorf("no controller has seen %s %s", o.GetKind(), o.GetName())
		}
		return nil
	})
}
